def row_sums(x, axes):
    return {"y": x.sum(axis=-1)}


def row_sums_mlx(x, axes):
    return [x.sum(axis=-1)]

#include "team.h"

#include <pthread.h>

namespace {

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
ksr_u32 turn;      // how many times the team was called
ksr_u32 busy;      // of the others, how many have not finished this turn
ksr_u32 size = 1;  // of the team
ksr_u32 called;    // how many of the team work in this turn
void (*prepare_member)();
void (*task)(ksr_u32, void*);
void* task_context;

void finish_turn() {
    if (--busy == 0) pthread_cond_broadcast(&changed);
}

void* member(void* number) {
    const ksr_u32 me = ksr_u32(reinterpret_cast<ksr_address>(number));
    prepare_member();
    pthread_mutex_lock(&lock);
    for (ksr_u32 seen = 0;; ++seen) {
        finish_turn();
        while (turn == seen) pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
        if (me < called) task(me, task_context);
        pthread_mutex_lock(&lock);
    }
}

void wait_for_others() {
    while (busy) pthread_cond_wait(&changed, &lock);
}

bool start_thread(ThreadStack stack, void* (*body)(void*), void* argument) {
    pthread_attr_t attributes;
    pthread_t thread;
    return !pthread_attr_init(&attributes) && !pthread_attr_setstack(&attributes, stack.begin, stack.bytes) &&
           !pthread_create(&thread, &attributes, body, argument);
}

void* leader(void* work) {
    pthread_mutex_lock(&lock);  // until the creating thread is through with it, which takes calls that a sandbox refuses
    pthread_mutex_unlock(&lock);
    reinterpret_cast<void (*)()>(work)();
    return nullptr;
}

}  // namespace

bool lead_team(ThreadStack stack, void (*work)()) {
    pthread_mutex_lock(&lock);
    bool started = start_thread(stack, leader, reinterpret_cast<void*>(work));
    pthread_mutex_unlock(&lock);
    return started;
}

ksr_u32 start_team(ksr_u32 wanted, ThreadStack (*stack_of)(ksr_u32), void (*prepare)()) {
    prepare_member = prepare;
    pthread_mutex_lock(&lock);
    for (; size < wanted && size < kMaxTeam; ++size) {
        if (!start_thread(stack_of(size), member, reinterpret_cast<void*>(ksr_address(size)))) break;
        ++busy;
    }
    wait_for_others();
    pthread_mutex_unlock(&lock);
    return size;
}

void run_team(ksr_u32 count, void (*work)(ksr_u32, void*), void* context) {
    if (count <= 1) return work(0, context);
    pthread_mutex_lock(&lock);
    task = work;
    task_context = context;
    called = count;
    busy = size - 1;
    ++turn;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    work(0, context);
    pthread_mutex_lock(&lock);
    wait_for_others();
    pthread_mutex_unlock(&lock);
}

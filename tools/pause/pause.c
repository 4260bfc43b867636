/* The first process of every pod: holds the pod's namespaces, reaps its orphans, exits on SIGINT or SIGTERM. */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void leave(int signal) {
    (void)signal;
    _exit(0);
}

static void reap(int signal) {
    (void)signal;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

int main(void) {
    struct sigaction leaving = {.sa_handler = leave}, reaping = {.sa_handler = reap, .sa_flags = SA_NOCLDSTOP};
    if (sigaction(SIGINT, &leaving, NULL) || sigaction(SIGTERM, &leaving, NULL) || sigaction(SIGCHLD, &reaping, NULL)) {
        perror("sigaction");
        return 1;
    }
    for (;;)
        pause();
}

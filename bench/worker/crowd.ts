/**
 * Runs as a process (`node crowd.ts`) that computes until it is killed, and uses only registers. A worker
 * costs more while this process runs, because it shares the cores and the caches of the machine. The
 * difference shows how much of the additional cost of several processes comes from the machine.
 */
for (let value = 1; value !== 0; value = (value * 3 + 1) | 1);

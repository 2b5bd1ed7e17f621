/**
 * Says where servers of customers listen: at any free port of 127.0.0.1. `backlog`: the number of connections
 * that may wait until the server accepts them. Node's default is 511. With that, the system drops connections
 * while all CPUs are busy. The system repeats their handshakes after 1, 2, 4 and 8 seconds, so the server
 * seems to hang.
 */
export const anywhere = { port: 0, host: '127.0.0.1', backlog: 4_096 } as const

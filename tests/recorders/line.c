/* A line between two TUN devices: rate, queue, delay, loss, reordering, ECN marks; writes what each end sees.
 *
 *   line FD_A FD_B OUT_A OUT_B SNAP MBIT QUEUE_BYTES DELAY_US LOSS_PER_MILLION LATE_PER_MILLION LATE_US MARK_BYTES SEED
 *
 * Packets from A to B pass a queue of QUEUE_BYTES before a line of MBIT (0: none), each is lost by chance, or comes
 * LATE_US later than its turn; those that find MARK_BYTES in the queue are marked (ECN). Both ways take DELAY_US.
 * Captures have link type 101 (IP), nanoseconds, and SNAP bytes of each packet. Ends at SIGTERM.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 1 << 16, MOST = 2048 };
typedef struct { int64_t due; int size; unsigned char data[MOST]; } Packet;
typedef struct { Packet *heap[ROOM]; int count; int64_t free_at; FILE *from, *to; int in, out; } Way;

static volatile sig_atomic_t over;
static void stop(int signal) { (void)signal; over = 1; }
static int64_t now(void) {
    struct timespec t; clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}
static void record(FILE *file, int64_t at, const unsigned char *data, int size, int snap) {
    uint32_t head[4] = {at / 1000000000LL, at % 1000000000LL, size < snap ? size : snap, size};
    fwrite(head, 16, 1, file); fwrite(data, head[2], 1, file);
}
static FILE *capture(const char *path) {
    FILE *file = fopen(path, "wb");
    uint32_t magic = 0xA1B23C4D, rest[4] = {0, 0, 65535, 101};
    uint16_t version[2] = {2, 4};
    if (!file) exit(2);
    fwrite(&magic, 4, 1, file); fwrite(version, 4, 1, file); fwrite(rest, 16, 1, file);
    return file;
}
static void put(Way *way, Packet *packet) {
    int at = way->count++;
    while (at && way->heap[(at - 1) / 2]->due > packet->due) { way->heap[at] = way->heap[(at - 1) / 2]; at = (at - 1) / 2; }
    way->heap[at] = packet;
}
static Packet *take(Way *way) {
    Packet *first = way->heap[0], *last = way->heap[--way->count];
    int at = 0, child;
    while ((child = 2 * at + 1) < way->count) {
        if (child + 1 < way->count && way->heap[child + 1]->due < way->heap[child]->due) child++;
        if (last->due <= way->heap[child]->due) break;
        way->heap[at] = way->heap[child]; at = child;
    }
    way->heap[at] = last;
    return first;
}
static void mark(unsigned char *ip) { /* ECT to CE, with the checksum of the header */
    uint32_t sum = 0;
    ip[1] |= 3; ip[10] = ip[11] = 0;
    for (int k = 0; k < (ip[0] & 15) * 4; k += 2) sum += ip[k] << 8 | ip[k + 1];
    while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
    sum = ~sum; ip[10] = sum >> 8; ip[11] = sum;
}
int main(int count, char **words) {
    if (count < 14) return 2;
    int snap = atoi(words[5]);
    double mbit = atof(words[6]), queue = atof(words[7]), marks = atof(words[12]);
    int64_t delay = atoll(words[8]) * 1000, late_by = atoll(words[11]) * 1000;
    long lost = atol(words[9]), late = atol(words[10]);
    static Way ways[2];
    struct sched_param first = {.sched_priority = 10};
    sched_setscheduler(0, SCHED_FIFO, &first); /* where it may */
    prctl(PR_SET_TIMERSLACK, 1);
    srand48(atol(words[13]));
    signal(SIGTERM, stop);
    for (int k = 0; k < 2; k++) {
        ways[k].in = atoi(words[1 + k]); ways[k].out = atoi(words[2 - k]);
        fcntl(ways[k].in, F_SETFL, O_NONBLOCK);
    }
    ways[0].from = ways[1].to = capture(words[3]);
    ways[0].to = ways[1].from = capture(words[4]);
    Packet *spare = NULL;
    while (!over) {
        int64_t next = INT64_MAX, at = now();
        for (int k = 0; k < 2; k++) {
            Way *way = &ways[k];
            for (int read_ = 0; read_ < 64 && way->count < ROOM; read_++) {
                if (!spare) spare = malloc(sizeof *spare);
                spare->size = read(way->in, spare->data, MOST);
                if (spare->size <= 0) break;
                if (spare->data[0] >> 4 != 4) continue; /* IPv6's neighbours */
                at = now();
                record(way->from, at, spare->data, spare->size, snap);
                spare->due = at + delay;
                if (k == 0) {
                    int64_t start = way->free_at > at ? way->free_at : at;
                    double waiting = mbit > 0 ? (start - at) * mbit / 8000 : 0;
                    if (waiting + spare->size > queue || (spare->size > 100 && lrand48() % 1000000 < lost)) continue;
                    if (marks > 0 && waiting > marks && spare->data[1] & 3) mark(spare->data);
                    if (mbit > 0) way->free_at = start + (int64_t)(spare->size * 8000 / mbit);
                    spare->due = (mbit > 0 ? way->free_at : at) + delay;
                    if (lrand48() % 1000000 < late) spare->due += late_by;
                }
                put(way, spare); spare = NULL;
            }
            at = now();
            while (way->count && way->heap[0]->due <= at) {
                Packet *packet = take(way);
                record(way->to, now(), packet->data, packet->size, snap);
                if (write(way->out, packet->data, packet->size) < 0) {} /* the other end is gone */
                free(packet);
            }
            if (way->count && way->heap[0]->due < next) next = way->heap[0]->due;
        }
        struct pollfd fds[2] = {{ways[0].in, POLLIN, 0}, {ways[1].in, POLLIN, 0}};
        int64_t rest = next == INT64_MAX ? 100000000 : next - now();
        struct timespec wait = {rest > 0 ? rest / 1000000000 : 0, rest > 0 ? rest % 1000000000 : 0};
        ppoll(fds, 2, &wait, NULL);
    }
    fclose(ways[0].from); fclose(ways[0].to);
    return 0;
}

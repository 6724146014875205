// climit: what the work of an MQTT and XMPP load generator costs in plain C.

#include "climit.h"
#include "support.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: climit COMMAND [--option value]...\n"
    "  sink      --mode discard|ack|fanout [--port 0] [--certfile F --keyfile F]; prints `port N`, serves until SIGTERM or the end of stdin\n"
    "  publish   --port N --qos 0|1|2 --clients N [--batch N] [--window N] [--rate N] --seconds N\n"
    "  receive   --port N --subscribers N | --clients PAIRS; --rate N | --window N; --seconds N\n"
    "  connect   --port N --clients N [--sources N] [--pending N] --seconds HOLD\n"
    "  library   the same on libmosquitto; [--messages N --qos 0|1|2 --window N] publishes once all are up\n"
    "  decode    --mode contiguous|segments|fragments --seconds N\n"
    "  xmpp      --mode login|message --port N --clients N [--domain D] [--sources N] [--pending N] [--window N | --rate N] --seconds N\n"
    "  xml       --mode contiguous|fragments --seconds N\n"
    "publish and connect: --cafile F speaks TLS, --ws WebSocket.\n"
    "Each prints one line of JSON at its end.\n";

static const struct option flags[] = {
    {"host", required_argument, NULL, 'h'},        {"port", required_argument, NULL, 'p'},
    {"mode", required_argument, NULL, 'm'},        {"topic", required_argument, NULL, 't'},
    {"clients", required_argument, NULL, 'c'},     {"subscribers", required_argument, NULL, 'u'},
    {"qos", required_argument, NULL, 'q'},         {"window", required_argument, NULL, 'F'},
    {"batch", required_argument, NULL, 'b'},       {"size", required_argument, NULL, 's'},
    {"rate", required_argument, NULL, 'r'},        {"seconds", required_argument, NULL, 'd'},
    {"sources", required_argument, NULL, 'S'},     {"pending", required_argument, NULL, 'P'},
    {"cafile", required_argument, NULL, 'A'},      {"certfile", required_argument, NULL, 'C'},
    {"keyfile", required_argument, NULL, 'K'},     {"ws", no_argument, NULL, 'W'},
    {"domain", required_argument, NULL, 'D'},      {"messages", required_argument, NULL, 'M'},
    {NULL, 0, NULL, 0},
};

static int usage_error(void) {
    fputs(usage, stderr);
    return 64;
}

int main(int count, char **arguments) {
    struct options options = {
        .host = "127.0.0.1", .mode = "discard", .topic = "limits/load/topic/", .clients = 100, .window = 16, .batch = 1, .size = 64,
        .seconds = 5, .pending = 64, .domain = "localhost",
    };
    if (count < 2) return usage_error();
    for (int flag; (flag = getopt_long(count - 1, arguments + 1, "", flags, NULL)) != -1;) {
        switch (flag) {
        case 'h': options.host = optarg; break;
        case 'p': options.port = atoi(optarg); break;
        case 'm': options.mode = optarg; break;
        case 't': options.topic = optarg; break;
        case 'c': options.clients = atoi(optarg); break;
        case 'u': options.subscribers = atoi(optarg); break;
        case 'q': options.qos = atoi(optarg); break;
        case 'F': options.window = atoi(optarg); break;
        case 'b': options.batch = atoi(optarg); break;
        case 's': options.size = atoi(optarg); break;
        case 'r': options.rate = atof(optarg); break;
        case 'd': options.seconds = atof(optarg); break;
        case 'S': options.sources = atoi(optarg); break;
        case 'P': options.pending = atoi(optarg); break;
        case 'A': options.cafile = optarg; break;
        case 'C': options.certfile = optarg; break;
        case 'K': options.keyfile = optarg; break;
        case 'W': options.websocket = 1; break;
        case 'D': options.domain = optarg; break;
        case 'M': options.messages = atoi(optarg); break;
        default: return usage_error();
        }
    }
    errno = 0;
    const char *command = arguments[1];
    if (!strcmp(command, "sink")) return run_sink(&options);
    if (!strcmp(command, "publish")) return run_publish(&options);
    if (!strcmp(command, "receive")) return run_receive(&options);
    if (!strcmp(command, "connect")) return run_connect(&options);
    if (!strcmp(command, "library")) return run_library(&options);
    if (!strcmp(command, "decode")) return run_decode(&options);
    if (!strcmp(command, "xmpp")) return run_xmpp(&options);
    if (!strcmp(command, "xml")) return run_xml(&options);
    return usage_error();
}

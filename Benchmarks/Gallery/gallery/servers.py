"""The servers, each on free ports of 127.0.0.1 with a folder of its own, ended by process."""

import contextlib
import dataclasses
import glob
import os
import signal

from . import host
from .processes import Program, free_ports, wait_until

DOMAIN = "localhost"
PASSWORD = "secret"
# Messages without an acknowledgement to a subscriber, of servers that have such a limit.
IN_FLIGHT = 100


@dataclasses.dataclass
class Server:
    name: str
    title: str
    port: int
    pid: int
    # Options that clients need to log in.
    login: tuple = ()
    url: str = ""


@dataclasses.dataclass(frozen=True)
class Kind:
    name: str
    title: str
    start: object
    is_installed: object
    version: object
    settings: str
    qos: tuple = (0, 1, 2)


def clamor_path():
    return os.environ.get("CLAMOR", str(host.ROOT / ".build/release/clamor"))


@contextlib.contextmanager
def running(program, port, number=signal.SIGTERM):
    try:
        yield program.must_listen(port)
    finally:
        program.end(number)


@contextlib.contextmanager
def mosquitto(folder, users=0):
    [port] = free_ports(1)
    settings = folder / "mosquitto.conf"
    settings.write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\nsys_interval 1\nlog_type none\n"
        f"max_queued_messages 0\nmax_queued_bytes 0\nmax_inflight_messages {IN_FLIGHT}\n"
        # Nagle's algorithm and delayed acknowledgements else hold packets of a handshake for 40 ms.
        "set_tcp_nodelay true\n"
    )
    # Started as root, it reads its file as a user of its own.
    folder.chmod(0o755)
    with running(Program([host.program("mosquitto"), "-c", settings], folder, "mosquitto"), port) as program:
        yield Server("mosquitto", "mosquitto", port, program.pid, url=f"mqtt://127.0.0.1:{port}")


@contextlib.contextmanager
def embedded(folder, users=0):
    [port] = free_ports(1)
    words = [clamor_path(), "broker", "-p", port, "--quiet"]
    with running(Program(words, folder, "embedded"), port) as program:
        yield Server("embedded", "embedded broker", port, program.pid, url=f"mqtt://127.0.0.1:{port}")


EJABBERD = """
hosts: ["localhost"]
loglevel: warning
log_rotate_count: 0
auth_method: [internal]
listen:
  - {{port: {mqtt}, ip: "127.0.0.1", module: mod_mqtt, backlog: 4096}}
  - {{port: {xmpp}, ip: "127.0.0.1", module: ejabberd_c2s, backlog: 4096, max_fsm_queue: 1000000}}
modules:
  mod_mqtt: {{max_queue: infinity}}
  mod_roster: {{versioning: true}}
  mod_muc: {{access: all, access_create: all, max_users: 10000, max_user_conferences: 10000}}
  mod_disco: {{}}
  mod_ping: {{}}
"""


def ejabberd_libraries():
    """The folder of Debian's Erlang libraries, which holds ejabberd."""
    return next((os.path.dirname(path) for path in glob.glob("/usr/lib/*/ejabberd-*")), "")


@contextlib.contextmanager
def ejabberd(folder, users=0):
    """An Erlang node without distribution: no name server is started that would outlive it."""
    mqtt, xmpp = free_ports(2)
    settings = folder / "ejabberd.yml"
    settings.write_text(EJABBERD.format(mqtt=mqtt, xmpp=xmpp))
    code = (
        "{ok, _} = application:ensure_all_started(ejabberd), "
        f'[ok = ejabberd_auth:try_register(N, <<"{DOMAIN}">>, <<"{PASSWORD}">>) || '
        'N <- [<<"clamor">> | [<<"user", (integer_to_binary(I))/binary>> || I <- lists:seq(1, '
        f'{users})]]], io:format("accounts made~n").'
    )
    variables = {
        "EJABBERD_CONFIG_PATH": str(settings),
        "EJABBERD_LOG_PATH": str(folder / "ejabberd.out"),
        "ERL_LIBS": ejabberd_libraries(),
        "ERL_CRASH_DUMP": str(folder / "crash"),
        "HOME": str(folder),
    }
    database = f'"{folder / "mnesia"}"'
    words = [host.program("erl"), "-noinput", "+K", "true", "-mnesia", "dir", database, "-eval", code]
    program = Program(words, folder, "ejabberd", variables)
    with running(program, mqtt, signal.SIGKILL):
        if not wait_until(lambda: "accounts made" in program.text or program.has_ended(), 120) or program.has_ended():
            raise SystemExit(f"ejabberd made no accounts\n{program.text[-2000:]}")
        user = f"clamor@{DOMAIN}"
        yield Server(
            "ejabberd",
            "ejabberd",
            mqtt if not users else xmpp,
            program.pid,
            ("-u", user, "-P", PASSWORD),
            f"mqtt://{user.replace('@', '%40')}:{PASSWORD}@127.0.0.1:{mqtt}",
        )


RABBITMQ = """
listeners.tcp = none
mqtt.listeners.tcp.1 = 127.0.0.1:{port}
mqtt.tcp_listen_options.backlog = 4096
mqtt.allow_anonymous = true
mqtt.default_user = guest
mqtt.default_pass = guest
mqtt.prefetch = {in_flight}
log.console.level = error
"""


@contextlib.contextmanager
def name_server(folder):
    """The Erlang name server on a port of its own; a node would start one that outlives it."""
    [port] = free_ports(1)
    words = [host.program("epmd"), "-port", port, "-address", "127.0.0.1"]
    with running(Program(words, folder, "epmd"), port):
        yield port


@contextlib.contextmanager
def rabbitmq(folder, users=0):
    port, node = free_ports(2)
    (folder / "rabbitmq.conf").write_text(RABBITMQ.format(port=port, in_flight=IN_FLIGHT))
    (folder / "plugins").write_text("[rabbitmq_mqtt].\n")
    with name_server(folder) as names:
        variables = {
            "HOME": str(folder),
            "ERL_EPMD_PORT": str(names),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"clamor{node}@localhost",
            "RABBITMQ_NODE_PORT": str(node),
            "RABBITMQ_DIST_PORT": str(node),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_FEATURE_FLAGS_FILE": str(folder / "flags"),
        }
        program = Program(["/usr/lib/rabbitmq/bin/rabbitmq-server"], folder, "rabbitmq", variables)
        with running(program, port, signal.SIGKILL):
            yield Server("rabbitmq", "RabbitMQ", port, program.pid, url=f"mqtt://127.0.0.1:{port}")


PROSODY = """
run_as_root = true
pidfile = "{folder}/prosody.pid"
data_path = "{folder}/data"
certificates = "{folder}"
log = {{ {{ levels = {{ min = "warn" }}, to = "console" }} }}
interfaces = {{ "127.0.0.1" }}
c2s_ports = {{ {port} }}
network_settings = {{ tcp_backlog = 4096 }}
modules_enabled = {{ "roster", "saslauth", "disco", "ping", "version" }}
modules_disabled = {{ "s2s", "tls" }}
authentication = "internal_plain"
c2s_require_encryption = false
allow_unencrypted_plain_auth = true
VirtualHost "{domain}"
Component "conference.{domain}" "muc"
"""


@contextlib.contextmanager
def prosody(folder, users=0):
    [port] = free_ports(1)
    accounts = folder / f"data/{DOMAIN}/accounts"
    accounts.mkdir(parents=True)
    for name in ["clamor", *(f"user{number}" for number in range(1, users + 1))]:
        (accounts / f"{name}.dat").write_text(f'return {{ ["password"] = "{PASSWORD}"; }};\n')
    settings = folder / "prosody.cfg.lua"
    settings.write_text(PROSODY.format(folder=folder, port=port, domain=DOMAIN))
    words = [host.program("prosody"), "-F", "--config", settings]
    with running(Program(words, folder, "prosody"), port, signal.SIGKILL) as program:
        yield Server("prosody", "prosody", port, program.pid)


def has_ejabberd():
    return bool(host.program("erl") and ejabberd_libraries())


BROKERS = [
    Kind(
        "mosquitto",
        "mosquitto",
        mosquitto,
        lambda: host.program("mosquitto"),
        lambda: host.package("mosquitto"),
        f"no persistence, no limit of queues, `max_inflight_messages {IN_FLIGHT}`, `set_tcp_nodelay true`",
    ),
    Kind(
        "ejabberd",
        "ejabberd",
        ejabberd,
        has_ejabberd,
        lambda: host.package("ejabberd"),
        "mod_mqtt without a limit of queues, internal accounts with a password",
    ),
    Kind(
        "rabbitmq",
        "RabbitMQ",
        rabbitmq,
        lambda: os.path.exists("/usr/lib/rabbitmq/bin/rabbitmq-server"),
        lambda: host.package("rabbitmq-server"),
        f"MQTT plugin, anonymous clients, `mqtt.prefetch = {IN_FLIGHT}`; persistent sessions are durable queues on"
        " disk; the plugin has no QoS 2",
        (0, 1),
    ),
    Kind(
        "embedded",
        "embedded broker",
        embedded,
        lambda: True,
        lambda: host.output(clamor_path(), "--version"),
        "`clamor broker`, without authentication and persistence",
    ),
]

XMPP = [
    Kind(
        "ejabberd",
        "ejabberd",
        ejabberd,
        has_ejabberd,
        lambda: host.package("ejabberd"),
        "internal accounts in Mnesia, no TLS, no shaper, no archive",
    ),
    Kind(
        "prosody",
        "prosody",
        prosody,
        lambda: host.program("prosody"),
        lambda: host.package("prosody"),
        "accounts in files, no TLS, no limits, no archive",
    ),
]

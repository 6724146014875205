/// A scenario that is in the program, to begin with.
package struct ReadyScenario: Sendable {
    /// Of the command line, and of the file without `.yaml`.
    package let name: String
    /// One line.
    package let about: String
    package let text: String

    /// The first is the one that is written where no name is given.
    package static let all = [
        Self.fleet, Self.fanOut, Self.doorAccess, Self.doorAccessMQTT, Self.loginStorm, Self.sessionDrain,
        Self.requestResponse, Self.mixed,
    ]
}

extension ReadyScenario {
    static let fleet = ReadyScenario(
        name: "fleet",
        about: "devices report and take commands, operators command, services share the messages",
        text: """
            # Devices publish telemetry and status, and each hears its own commands; a backend shares the telemetry.
            #
            #   clamor run fleet.yaml --check
            #   clamor run fleet.yaml --set TARGET=mqtt://broker.example --set DEVICES=10000 --set RATE=5000/s
            name: fleet
            target: ${TARGET:-embedded}              # mqtt://, mqtts://, ws:// or wss://host:port
            seed: 42                                 # the same ids and topics each time
            groups:
              devices:
                clients: ${DEVICES:-100}
                # Sessions outlive a reconnect: what is under way to a client that goes is not lost.
                connect: { rate: "${CONNECTS:-500/s}", protocol: 5, keep_alive: 60s, clean: false, session_expiry: 5m }
                publish:
                  - name: telemetry
                    topic: fleet/%i/telemetry        # %i is the number of the device
                    qos: 1
                    size: 256                        # bytes; from 32 on each message is accounted for
                    rate: ${RATE:-500/s}             # of all devices together: open loop
                  - { name: status, topic: "fleet/%i/status", qos: 1, size: 64, every: "${STATUS:-10s}", retain: true }
                subscribe: [{ filter: "fleet/%i/command", qos: 1 }]
              operators:
                clients: ${OPERATORS:-10}
                connect: { rate: "${CONNECTS:-500/s}", protocol: 5, clean: false, session_expiry: 5m }
                publish: { topic: "fleet/%rand_${DEVICES:-100}/command", qos: 1, size: 64, rate: "${COMMANDS:-20/s}" }
              backend:
                clients: ${SERVICES:-4}
                connect: { rate: "${CONNECTS:-500/s}", protocol: 5, clean: false, session_expiry: 5m }
                # $share: each message goes to one of the services.
                subscribe:
                  - { filter: "$share/backend/fleet/+/telemetry", qos: 1 }
                  - { filter: "$share/backend/fleet/+/status", qos: 1 }
            stages:
              - { name: settle, for: "${SETTLE:-5s}", load: 20%, warmup: true }
              - { name: peak, for: "${PEAK:-20s}" }
              - { name: storm, for: "${STORM:-5s}", reconnect: 30% }    # spread over the stage
            thresholds:
              - "delivery_duration{stage=peak} p99 < ${P99:-250ms}"
              - "delivery_lost == 0"

            """
    )

    static let fanOut = ReadyScenario(
        name: "fan-out",
        about: "one sender, many receivers",
        text: """
            # One sender, and many that all hear it: what a broadcast costs the server.
            #
            #   clamor run fan-out.yaml --set TARGET=mqtt://broker.example --set LISTENERS=5000
            name: fan-out broadcast
            target: ${TARGET:-embedded}
            seed: 42
            groups:
              broadcast:
                clients: 1
                subscribers: ${LISTENERS:-200}
                topology: fan-out
                connect: { rate: "${CONNECTS:-500/s}" }
                publish:
                  topic: news/all
                  qos: 1
                  size: 512
                  # So many messages a second, then twice, then four times as many.
                  rate: { steps: ["${RATE:-5/s}", "${RATE2:-10/s}", "${RATE4:-20/s}"], every: "${STEP:-10s}" }
            stages:
              - { name: one, for: "${STEP:-10s}" }
              - { name: two, for: "${STEP:-10s}" }
              - { name: four, for: "${STEP:-10s}" }
            thresholds:
              - "delivery_duration{stage=four} p99 < ${P99:-500ms}"
              - "delivery_lost == 0"

            """
    )

    static let doorAccess = ReadyScenario(
        name: "door-access",
        about: "XMPP clients send each other direct messages, at random times",
        text: """
            # Door controllers and their desks send each other direct messages, at random times as people come and go.
            #
            #   clamor run door-access.yaml --set TARGET=xmpp://xmpp.example:5222 --set DOMAIN=example.org
            #
            # The password is that of all accounts: CLAMOR_PASSWORD in the environment, or --set.
            name: door access
            target: ${TARGET:-xmpp://127.0.0.1:5222}
            seed: 42
            duration: ${DURATION:-30s}
            warmup: ${WARMUP:-5s}
            groups:
              doors:
                clients: ${DOORS:-50}
                jid: door%i@${DOMAIN:-localhost}
                password: ${CLAMOR_PASSWORD:-secret}
                register: ${REGISTER:-true}      # creates the accounts, and removes them again
                tls: ${TLS:-required}            # or direct, allowed, off
                connect: { rate: "${CONNECTS:-50/s}" }
                message:
                  size: 128
                  rate: ${RATE:-100/s}
                  arrivals: poisson              # independent of each other, by the seed
                  pairing: random
            thresholds:
              - "delivery_duration p99 < ${P99:-500ms}"
              - "delivery_lost == 0"

            """
    )

    static let doorAccessMQTT = ReadyScenario(
        name: "door-access-mqtt",
        about: "doors and phones send messages to one client each, with the signature login of Alibaba Cloud",
        text: """
            # Doors tell phones who rings, and phones answer. Each message is to one client, which subscribes to
            # nothing, as in Alibaba Cloud's MQTT (ROOT/p2p/CLIENTID).
            #
            #   clamor run door-access-mqtt.yaml --check
            #   clamor run door-access-mqtt.yaml --set TARGET=mqtts://mqtt.example --set GROUP=GID_home --set ROOT=home
            #
            # The embedded broker takes any key. For Alibaba Cloud set TARGET, INSTANCE, GROUP, ROOT and ACCESS_KEY. The
            # secret key is CLAMOR_PASSWORD in the environment, or --set.
            name: door access over MQTT
            target: ${TARGET:-embedded}
            seed: 42
            templates:
              member:
                connect: { rate: "${CONNECTS:-200/s}", protocol: 4, keep_alive: 60s, clean: false }    # 120 s at most
                auth: aliyun                         # the password is a signature of the client id
                instance_id: ${INSTANCE:-mqtt-cn-example}
                group_id: ${GROUP:-GID_door}         # client ids are GROUP@@@...
                username: ${ACCESS_KEY:-key}
                password: ${CLAMOR_PASSWORD:-secret}
            groups:
              doors:
                template: member
                clients: ${DOORS:-50}
                prefix: door
                publish:
                  p2p: { root: "${ROOT:-door}", to: phones }    # each message to a random phone
                  qos: 1
                  size: 128
                  rate: ${RINGS:-50/s}               # of all doors together
                  arrivals: poisson                  # independent of each other, by the seed
              phones:
                template: member
                clients: ${PHONES:-100}
                prefix: phone
                publish:
                  p2p: { root: "${ROOT:-door}", to: doors }
                  qos: 1
                  size: 64
                  rate: ${ANSWERS:-50/s}
                  arrivals: poisson
            stages:
              - { name: settle, for: "${SETTLE:-5s}", load: 20%, warmup: true }
              - { name: peak, for: "${PEAK:-20s}" }
            thresholds:
              - "delivery_duration{stage=peak} p99 < ${P99:-500ms}"
              - "delivery_lost == 0"

            """
    )

    static let loginStorm = ReadyScenario(
        name: "login-storm",
        about: "all clients are cut off within seconds and come back at once",
        text: """
            # A network comes back: all clients connect again within a few seconds, while others go on with their work.
            #
            #   clamor run login-storm.yaml --set TARGET=mqtt://broker.example --set CLIENTS=20000 --set CONNECTS=2000/s
            name: login storm
            target: ${TARGET:-embedded}
            seed: 42
            groups:
              devices:
                clients: ${CLIENTS:-300}
                connect: { rate: "${CONNECTS:-300/s}", clean: false, session_expiry: 5m }
                publish: { topic: "devices/%i", qos: 1, size: 64, rate: "${RATE:-100/s}" }
            stages:
              - { name: calm, for: "${CALM:-10s}" }
              - { name: storm, for: "${STORM:-3s}", reconnect: 100% }
              - { name: after, for: "${AFTER:-10s}" }
            thresholds:
              - "reconnect_duration{phase=total} p99 < ${P99:-1s}"
              - "publish_ack_duration{stage=after} p99 < ${P99:-1s}"

            """
    )

    static let sessionDrain = ReadyScenario(
        name: "session-drain",
        about: "persistent sessions: subscribers go away, come back, and receive what was sent meanwhile",
        text: """
            # Sessions that outlive their connections: all subscribers are away for a while, and the server keeps what comes
            # for them (mosquitto by default 1,000 messages each); when they are back they get it, and at QoS 1 all of it.
            #
            #   clamor run session-drain.yaml --set TARGET=mqtt://broker.example
            name: persistent-session drain
            target: ${TARGET:-embedded}
            seed: 42
            drain: 30s                           # time for what the server still holds
            groups:
              sessions:
                clients: ${PAIRS:-50}
                subscribers: ${PAIRS:-50}
                topology: pair                   # subscriber k reads what publisher k writes
                connect: { rate: "${CONNECTS:-500/s}", protocol: 5, clean: false, session_expiry: 10m }
                publish: { topic: "inbox/%i", qos: 1, size: 128, rate: "${RATE:-200/s}" }
            stages:
              - { name: steady, for: "${STEADY:-10s}" }
              - { name: away, for: "${AWAY:-10s}", offline: true }
              - { name: drain-off, for: "${AFTER:-5s}", load: 10% }
            thresholds:
              - "delivery_lost == 0"
              - "delivery_duration{stage=steady} p99 < ${P99:-250ms}"

            """
    )

    static let requestResponse = ReadyScenario(
        name: "request-response",
        about: "MQTT 5 clients ask, services answer",
        text: """
            # Clients send requests with a response topic and correlation data; services answer each of them.
            #
            #   clamor run request-response.yaml --set TARGET=mqtt://broker.example --set CLIENTS=1000 --set RATE=2000/s
            name: request/response
            target: ${TARGET:-embedded}          # MQTT 5; shared subscriptions where there is more than one service
            seed: 42
            groups:
              api:
                clients: ${CLIENTS:-50}          # they ask, and each reads its own answers
                subscribers: ${SERVICES:-2}      # they answer, at QoS 0
                topology: request
                connect: { rate: "${CONNECTS:-500/s}", protocol: 5 }
                publish:
                  topic: api/orders/%i
                  response_topic: answers/%c     # %c is the id of the client; no topic of requests
                  qos: 1
                  size: 256
                  rate: ${RATE:-200/s}           # of all clients together: open loop
                  ack_timeout: ${TIMEOUT:-5s}    # an answer behind that is late
            stages:
              - { name: settle, for: "${SETTLE:-5s}", load: 20%, warmup: true }
              - { name: peak, for: "${PEAK:-20s}" }
            thresholds:
              - "request_duration{stage=peak} p99 < ${P99:-250ms}"
              - "requests_lost == 0"
              - "requests_late == 0"

            """
    )

    static let mixed = ReadyScenario(
        name: "mixed",
        about: "MQTT devices and XMPP users together",
        text: """
            # MQTT devices and XMPP users side by side, on one timeline.
            #
            #   clamor run mixed.yaml --set XMPP=xmpp://xmpp.example:5222 --set DOMAIN=example.org
            name: mixed
            seed: 42
            groups:
              sensors:
                target: ${MQTT:-embedded}
                clients: ${SENSORS:-50}
                subscribers: 2
                topology: fan-in
                publish: { topic: "fleet/%i/telemetry", qos: 1, size: 256, rate: "${RATE:-200/s}" }
              chat:
                target: ${XMPP:-xmpp://127.0.0.1:5222}
                clients: ${USERS:-20}
                jid: user%i@${DOMAIN:-localhost}
                password: ${CLAMOR_PASSWORD:-secret}
                register: ${REGISTER:-true}
                tls: ${TLS:-required}
                message: { size: 128, rate: "${MESSAGES:-50/s}", pairing: random }
            stages:
              - { name: settle, for: "${SETTLE:-5s}", load: 20%, warmup: true }
              - { name: peak, for: "${PEAK:-20s}" }
            thresholds:
              - "publish_ack_duration{group=sensors,stage=peak} p99 < ${P99:-250ms}"
              - "delivery_lost == 0"

            """
    )
}

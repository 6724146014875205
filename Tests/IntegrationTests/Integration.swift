import Testing

/// The built program, as a user starts it, against its own broker and against mosquitto.
///
/// One test at a time, for each wants the cores. The limit is for what hangs; nothing is judged by time.
@Suite("Integration", .serialized, .timeLimit(.minutes(10)))
enum Integration {}

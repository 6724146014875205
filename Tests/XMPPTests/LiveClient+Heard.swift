extension LiveClient {
    /// What modules have told, in words.
    final class Heard {
        private(set) var lines: [String] = []
        var changed: () -> Void = {}

        func note(_ line: String) {
            self.lines.append(line)
            self.changed()
        }
    }
}

// The script that runs a scenario as a job of Slurm.
extension DividedScenario {
    /// `file`: where it is written.
    func slurmScript(_ file: String) -> String {
        let scenario = self.path.contains("/") ? self.path : "./\(self.path)"
        return self.text(
            of: PackageResources.slurm_mustache,
            [
                "path": Self.word(self.path), "file": Self.word(file), "scenario": Self.word(scenario),
                "limit": self.limit, "ending": min(self.ending, 65_535), "hasVariables": !self.variables.isEmpty,
                "variables": self.variables.map(Self.word),
            ]
        )
    }

    /// Time for the job: hours, minutes, seconds.
    private var limit: String {
        // Ten minutes until all have joined and connected.
        let minutes = ((self.length ?? 86_400) + 59) / 60 + 10
        return "\(minutes / 60):\(minutes % 60 < 10 ? "0" : "")\(minutes % 60):00"
    }

    /// A word of a shell.
    private static func word(_ word: String) -> String {
        let isPlain = word.allSatisfy {
            $0.isASCII && ($0.isLetter || $0.isNumber || "_./%+-@:=,".contains($0))
        }
        return isPlain && !word.isEmpty ? word : "'\(word.replacing("'", with: #"'\''"#))'"
    }
}

// The script that runs a scenario as a job of Slurm.
extension DividedScenario {
    /// `file`: where it is written.
    func slurmScript(_ file: String) -> String {
        let scenario = self.path.contains("/") ? self.path : "./\(self.path)"
        return self.text(
            of: PackageResources.slurm_mustache,
            [
                "path": ShellWord.quoted(self.path), "file": ShellWord.quoted(file),
                "scenario": ShellWord.quoted(scenario),
                "limit": self.limit, "ending": min(self.ending, 65_535), "hasVariables": !self.variables.isEmpty,
                "variables": self.variables.map(ShellWord.quoted),
            ]
        )
    }

    /// Time for the job: hours, minutes, seconds.
    private var limit: String {
        // Ten minutes until all have joined and connected.
        let minutes = ((self.length ?? 86_400) + 59) / 60 + 10
        return "\(minutes / 60):\(minutes % 60 < 10 ? "0" : "")\(minutes % 60):00"
    }
}

import Foundation
import Report
import RunResult

/// Files that are written once, and then the user's.
package struct Draft: Hashable, Sendable {
    package struct File: Hashable, Sendable {
        package var path: String
        package var text: String
        /// Only its owner may read it.
        package var isSecret = false
    }

    package let files: [File]
    /// The command that comes next; empty where none does.
    package let next: String

    /// `next` explains itself, and ends with the command.
    init(path: String, text: String, next: String = "", isSecret: Bool = false) {
        self.files = [File(path: path, text: text, isSecret: isSecret)]
        self.next = next
    }

    /// `next` is empty where no command comes next.
    package init(files: [File], next: String = "") {
        self.files = files
        self.next = next
    }

    /// Grafana's dashboard, and Prometheus' configuration of its scrapes.
    init(dashboardIn directory: String) {
        self.next = ""
        guard directory != "-" else {
            self.files = [File(path: "-", text: GrafanaDashboard.text)]
            return
        }
        self.files = [
            File(path: "\(directory)/dashboard.json", text: GrafanaDashboard.text),
            File(path: "\(directory)/prometheus.yml", text: GrafanaDashboard.scrapeConfiguration()),
        ]
    }

    /// The load test of GitHub or GitLab, and the script that both run.
    init(workflowAt path: String) {
        let isGitLab = path.hasSuffix(".gitlab-ci.yml")
        let workflow = isGitLab ? PackageResources.gitlab_yml : PackageResources.workflow_yml
        self.files = [
            File(path: path, text: String(decoding: workflow, as: UTF8.self)),
            File(path: "load.sh", text: String(decoding: PackageResources.load_sh, as: UTF8.self)),
        ]
        self.next = """
            next, in the variables of CI:
              CLAMOR_GIT: the URL of the Git repository of Clamor; CLAMOR_REF: a commit or tag of it
              TARGET, BASE: the servers of this build and of main, if not mosquitto on the runner
              CLAMOR_PASSWORD, a secret: their password
            and in fleet.yaml, which clamor init fleet writes: the load, and its objectives under thresholds
            """
    }

    /// The first file's.
    package var path: String { self.files.first?.path ?? "" }
    package var text: String { self.files.first?.text ?? "" }
}

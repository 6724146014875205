import Foundation
import TestSupport

/// The objects that `clamor init --kubernetes` writes, and what would run in their pods.
///
/// A stand-in for a cluster: it reads what its parts would read, and gives command lines that run on this host.
struct KubernetesPods {
    /// A container's process.
    struct Process {
        let arguments: [String]
        let environment: [String: String]
        /// Files below the place where each of its volumes is mounted, as far as objects give their content.
        let files: [String: String]
    }

    struct Unexpected: Error { let what: String }

    private let objects: [Object]

    /// Reads YAML as Python does; `kubectl` sends no other values.
    init(path: String) async throws {
        let program = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))"
        let ending = try await Self.python("-c", program, path)
        guard ending.status == 0 else { throw Unexpected(what: ending.errors) }
        self.objects = try JSONDecoder().decode([Object].self, from: Data(ending.output.utf8))
    }

    static func python(_ arguments: String...) async throws -> RunningProgram.Ending {
        let command = ProcessInfo.processInfo.environment["CLAMOR_PYTHON"] ?? "python3"
        return try await RunningProgram("/usr/bin/env", [command] + arguments).ended()
    }

    var kinds: [String] { self.objects.map(\.kind) }

    /// The names that lead to pods, without addresses of their own.
    var services: [String] {
        self.objects.filter { $0.kind == "Service" && $0.spec?.clusterIP == "None" }.map(\.metadata.name)
    }

    /// The processes of a Job's pods, one for each of its completions.
    func processes(of job: String) throws -> [Process] {
        let object = try self.object("Job", job)
        guard let spec = object.spec, let pod = spec.template?.spec else { throw Unexpected(what: "\(object)") }
        let count = spec.completions ?? 1
        guard spec.parallelism ?? 1 == count, pod.containers.count == 1 else { throw Unexpected(what: "\(object)") }
        return try (0..<count).map { index in
            let container = pod.containers[0]
            var environment: [String: String] = [:]
            for variable in container.env {
                environment[variable.name] = try variable.value ?? self.secret(variable.valueFrom?.secretKeyRef)
            }
            if spec.completionMode == "Indexed" { environment["JOB_COMPLETION_INDEX"] = "\(index)" }
            return Process(
                arguments: (container.command + container.args).map { Self.expanded($0, environment) },
                environment: environment,
                files: try self.files(container, pod)
            )
        }
    }

    /// `$(NAME)`, and `$$` for a sign itself.
    private static func expanded(_ word: String, _ environment: [String: String]) -> String {
        word.replacing(/\$\$|\$\(([A-Za-z_][A-Za-z0-9_]*)\)/) { match in
            guard let name = match.1 else { return "$" }
            return environment[String(name)] ?? String(match.0)
        }
    }

    private func object(_ kind: String, _ name: String) throws -> Object {
        guard let object = self.objects.first(where: { $0.kind == kind && $0.metadata.name == name }) else {
            throw Unexpected(what: "no \(kind) \(name)")
        }
        return object
    }

    private func secret(_ reference: Object.KeyReference?) throws -> String {
        guard let reference, let text = try self.object("Secret", reference.name).stringData?[reference.key] else {
            throw Unexpected(what: "a variable without a value")
        }
        return text
    }

    private func files(_ container: Object.Container, _ pod: Object.Pod) throws -> [String: String] {
        var files: [String: String] = [:]
        for mount in container.volumeMounts {
            guard let volume = pod.volumes.first(where: { $0.name == mount.name }) else {
                throw Unexpected(what: "no volume \(mount.name)")
            }
            if let claim = volume.persistentVolumeClaim {
                _ = try self.object("PersistentVolumeClaim", claim.claimName)
            }
            var texts: [String: String]?
            if let map = volume.configMap { texts = try self.object("ConfigMap", map.name).data }
            if let secret = volume.secret { texts = try self.object("Secret", secret.secretName).stringData }
            for (name, text) in texts ?? [:] {
                files["\(mount.mountPath)/\(name)"] = text
            }
        }
        return files
    }
}

// MARK: - Objects, as far as they decide what runs

private struct Object: Decodable {
    struct Metadata: Decodable { let name: String }

    struct Spec: Decodable {
        let clusterIP: String?
        let completionMode: String?
        let completions: Int?
        let parallelism: Int?
        let template: Template?
    }

    struct Template: Decodable { let spec: Pod }

    struct Pod: Decodable {
        let containers: [Container]
        let volumes: [Volume]
    }

    struct Container: Decodable {
        let command: [String]
        let args: [String]
        let env: [Variable]
        let volumeMounts: [Mount]
    }

    struct Variable: Decodable {
        struct Source: Decodable { let secretKeyRef: KeyReference }

        let name: String
        let value: String?
        let valueFrom: Source?
    }

    struct KeyReference: Decodable {
        let name: String
        let key: String
    }

    struct Mount: Decodable {
        let name: String
        let mountPath: String
    }

    struct Volume: Decodable {
        struct Map: Decodable { let name: String }
        struct Secret: Decodable { let secretName: String }
        struct Claim: Decodable { let claimName: String }

        let name: String
        let configMap: Map?
        let secret: Secret?
        let persistentVolumeClaim: Claim?
    }

    let kind: String
    let metadata: Metadata
    let spec: Spec?
    let data: [String: String]?
    let stringData: [String: String]?
}

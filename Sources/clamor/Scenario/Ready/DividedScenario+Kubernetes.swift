import Foundation

// The objects that run a scenario on Kubernetes.
extension DividedScenario {
    /// Why the file does not go into a ConfigMap; `nil` if it does.
    var configMapProblem: String? {
        // A megabyte at most; names and the other keys are in it too.
        if self.text.utf8.count > 1_000_000 {
            return "is over 1 MB, which is all that a ConfigMap holds; make it smaller"
        }
        if self.text.split(separator: "\n").contains(where: { $0.hasPrefix("include:") }) {
            return "includes other files, and the pods have this one alone; write them into one file"
        }
        return nil
    }

    /// `file`: where they are written.
    func kubernetesObjects(_ file: String) -> String {
        let objects = [
            self.configMap, self.secret, self.service, self.claim, self.coordinator, self.indexedJob,
        ]
        return self.head(file) + objects.joined(separator: "---\n")
    }

    private func head(_ file: String) -> String {
        """
        # Runs \(self.path) on Kubernetes: each pod of an Indexed Job is a segment of the load, and a coordinator makes one
        # result of all.
        #
        #   sed -e "s|REPLACE_IMAGE|registry.example/clamor:1|" -e "s|REPLACE_PASSWORD|$(openssl rand -hex 16)|" \\
        #     -e "s|REPLACE_RUN|$(date +%s)|" \(file) | kubectl apply -f -
        #   kubectl wait --for=condition=complete --timeout=2h job/\(self.name)-coordinator
        #   kubectl logs job/\(self.name)-coordinator
        #
        # The image has the program clamor in its PATH. The password is one of your own: the segments have it from the
        # Secret. The word for the run is another one each time. Before the next run:
        #
        #   kubectl delete job -l app.kubernetes.io/instance=\(self.name)
        #
        # To change the number of segments, change completions, parallelism, CLAMOR_SEGMENTS and --segments. Files that the
        # scenario names belong into the ConfigMap, with /scenario/ in front of their names.

        """
    }

    // MARK: - Objects

    private var configMap: String {
        let lines = self.text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            line.isEmpty ? "" : "    \(line)"
        }
        // YAML 1.2 §8.1.1: how far the text is indented, where its first line cannot say it, and what ends it.
        let indent = self.text.first?.isWhitespace == true ? "2" : ""
        let end = self.text.hasSuffix("\n\n") ? "+" : self.text.hasSuffix("\n") ? "" : "-"
        let text = lines.joined(separator: "\n")
        return """
            apiVersion: v1
            kind: ConfigMap
            \(self.metadata("scenario"))
            data:
              scenario.yaml: |\(indent)\(end)
            \(text)\(self.text.hasSuffix("\n") ? "" : "\n")
            """
    }

    private var secret: String {
        """
        apiVersion: v1
        kind: Secret
        \(self.metadata("password"))
        stringData:
          password: REPLACE_PASSWORD

        """
    }

    private var service: String {
        """
        # Headless: the name of the coordinator's pod, without an address of its own.
        apiVersion: v1
        kind: Service
        \(self.metadata("coordinator"))
        spec:
          clusterIP: None
          publishNotReadyAddresses: true
          selector:
        \(self.labels("coordinator", depth: 2))
          ports:
            - name: mqtt
              port: \(Self.port)

        """
    }

    private var claim: String {
        """
        # Keeps the results, a directory for each run.
        apiVersion: v1
        kind: PersistentVolumeClaim
        \(self.metadata("results"))
        spec:
          accessModes: [ReadWriteOnce]
          resources:
            requests:
              storage: 1Gi

        """
    }

    private var coordinator: String {
        let arguments = [
            "coordinate", "--segments", "\(self.segments)", "--listen", "0.0.0.0:\(Self.port)", "--user", "segment",
            "--join-timeout", Self.joinTimeout, "--out", "/results/$(CLAMOR_RUN)",
        ]
        return """
            apiVersion: batch/v1
            kind: Job
            \(self.metadata("coordinator"))
            spec:
              # A second one would have no segments to join it.
              backoffLimit: 0
              template:
                metadata:
                  labels:
            \(self.labels("coordinator", depth: 4))
                spec:
                  restartPolicy: Never
            \(self.pod(sysctls: false))
                  containers:
                    - name: coordinator
            \(self.container(arguments, cpus: 1, memory: "1Gi", port: true))
                  volumes:
            \(self.scenarioVolume)
                    - name: results
                      persistentVolumeClaim:
                        claimName: \(self.name)-results

            """
    }

    private var indexedJob: String {
        let arguments = [
            "run", "--segment", "auto", "--coordinator", "mqtt://segment@\(self.name)-coordinator:\(Self.port)",
            "--join-timeout", Self.joinTimeout, "--out", "/results/segment", "--quiet",
        ]
        return """
            apiVersion: batch/v1
            kind: Job
            \(self.metadata("segment"))
            spec:
              completionMode: Indexed
              completions: \(self.segments)
              # All at once: none begins before all have joined.
              parallelism: \(self.segments)
              podReplacementPolicy: Failed
              # Until the connects begin, a segment may join again.
              backoffLimitPerIndex: 2
              podFailurePolicy:
                rules:
                  # An exit that the segment decided itself is final; a second try is for pods that were killed (137, 143).
                  - action: FailIndex
                    onExitCodes:
                      containerName: segment
                      operator: NotIn
                      values: [137, 143]
              template:
                metadata:
                  labels:
            \(self.labels("segment", depth: 4))
                spec:
                  restartPolicy: Never
            \(self.pod(sysctls: true))
                  topologySpreadConstraints:
                    # Over the nodes, each of which has source ports and a network card of its own.
                    - maxSkew: 1
                      topologyKey: kubernetes.io/hostname
                      whenUnsatisfiable: ScheduleAnyway
                      labelSelector:
                        matchLabels:
            \(self.labels("segment", depth: 7))
                  containers:
                    - name: segment
            \(self.container(arguments, cpus: 2, memory: "2Gi", port: false))
                  volumes:
            \(self.scenarioVolume)
                    - name: results
                      emptyDir: {}

            """
    }

    // MARK: - Parts of objects

    private static let port = CoordinatorPlace.usualPort
    /// Nodes may have to be started, and images fetched.
    private static let joinTimeout = "10m"

    private func metadata(_ component: String) -> String {
        """
        metadata:
          name: \(self.name)-\(component)
          labels:
        \(self.labels(component, depth: 2))
        """
    }

    private func labels(_ component: String, depth: Int) -> String {
        ["name: clamor", "instance: \(self.name)", "component: \(component)"].map { label in
            String(repeating: "  ", count: depth) + "app.kubernetes.io/\(label)"
        }.joined(separator: "\n")
    }

    private func pod(sysctls: Bool) -> String {
        let ports = """

                    # All ports of the pod for its connections; a safe one, which needs no leave of the node.
                    sysctls:
                      - name: net.ipv4.ip_local_port_range
                        value: "1024 65535"
            """
        return """
                  # The drain and the results of a run that is ended.
                  terminationGracePeriodSeconds: \(self.ending)
                  automountServiceAccountToken: false
                  enableServiceLinks: false
                  securityContext:
                    runAsNonRoot: true
                    runAsUser: 65532
                    runAsGroup: 65532
                    fsGroup: 65532
                    seccompProfile:
                      type: RuntimeDefault\(sysctls ? ports : "")
            """
    }

    /// Whole CPUs, and as many as its limit, so that it is Guaranteed and may have them alone.
    private func container(_ arguments: [String], cpus: Int, memory: String, port: Bool) -> String {
        let words = [arguments[0]] + self.arguments(file: "/scenario/scenario.yaml") + arguments.dropFirst()
        let lines = words.map { "            - \(Self.quoted($0))" }.joined(separator: "\n")
        let listens = """

                      ports:
                        - name: mqtt
                          containerPort: \(Self.port)
            """
        let count = """

                        - name: CLAMOR_SEGMENTS
                          value: "\(self.segments)"
            """
        return """
                      image: REPLACE_IMAGE
                      command: [clamor]
                      args:
            \(lines)
                      env:\(port ? "" : count)
                        - name: CLAMOR_RUN
                          value: "REPLACE_RUN"
                        - name: CLAMOR_COORDINATOR_PASSWORD
                          valueFrom:
                            secretKeyRef:
                              name: \(self.name)-password
                              key: password\(port ? listens : "")
                      resources:
                        requests: { cpu: "\(cpus)", memory: \(memory) }
                        limits: { cpu: "\(cpus)", memory: \(memory) }
                      securityContext:
                        allowPrivilegeEscalation: false
                        readOnlyRootFilesystem: true
                        capabilities:
                          drop: [ALL]
                      volumeMounts:
                        - name: scenario
                          mountPath: /scenario
                        - name: results
                          mountPath: /results
            """
    }

    private var scenarioVolume: String {
        """
                - name: scenario
                  configMap:
                    name: \(self.name)-scenario
        """
    }

    /// In double quotes, in which YAML reads all that JSON has; a variable is Kubernetes' own alone.
    private static func quoted(_ word: String) -> String {
        let escaped = word.replacing("$(", with: "$$(").replacing("$$(CLAMOR_RUN)", with: "$(CLAMOR_RUN)")
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        guard let json = try? encoder.encode(escaped) else { preconditionFailure("a text can be encoded") }
        return String(decoding: json, as: UTF8.self)
    }
}

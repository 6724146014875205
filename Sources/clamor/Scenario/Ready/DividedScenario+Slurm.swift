// The script that runs a scenario as a job of Slurm.
extension DividedScenario {
    /// `file`: where it is written.
    func slurmScript(_ file: String) -> String {
        let scenario = self.path.contains("/") ? self.path : "./\(self.path)"
        return #"""
            #!/bin/bash
            # Runs \#(Self.line(self.path)) on Slurm: each task is a segment of the load, and the coordinator on the job's first node
            # makes one result of all. It is in clamor-JOBID, in the directory of sbatch.
            #
            #   sbatch --wait \#(Self.line(file))                        exits as the run does: 99 if a threshold failed
            #   sbatch --wait \#(Self.line(file)) --set NAME=VALUE       options of clamor run, for all segments
            #
            # Adapt nodes, tasks and CPUs: the number of tasks is the number of segments. A secret of the scenario comes from the
            # environment of sbatch.
            #SBATCH --job-name=\#(self.name)
            #SBATCH --nodes=\#(self.segments)
            #SBATCH --ntasks=\#(self.segments)
            #SBATCH --cpus-per-task=2
            #SBATCH --time=\#(self.limit)
            #SBATCH --output=clamor-%j.log
            # A job that begins again would find results there.
            #SBATCH --no-requeue
            # Before the time limit: the coordinator ends the run, and has time for the drain and the results.
            #SBATCH --signal=B:USR1@\#(min(self.ending, 65_535))
            set -u

            # The program and the scenario, as all nodes have them.
            clamor=clamor
            scenario=\#(Self.quoted(scenario))
            \#(self.variables.isEmpty ? "" : "set -- \(self.given) \"$@\"\n")results=$SLURM_SUBMIT_DIR/clamor-$SLURM_JOB_ID
            # Each segment has a directory here until its results have arrived. A disk of the node disturbs the load less, but
            # may be gone with the job, and with it the results that a coordinator which died did not fetch.
            segments=$results-segments
            # This node as the other nodes know it; no name of loopback. Two jobs on a node have different ports.
            host=$(hostname)
            port=$((20000 + SLURM_JOB_ID % 10000))

            export CLAMOR_RUN=$SLURM_JOB_ID
            # In the environment alone: others on the node may read command lines.
            CLAMOR_COORDINATOR_PASSWORD=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
            export CLAMOR_COORDINATOR_PASSWORD

            "$clamor" coordinate "$scenario" --segments "$SLURM_NTASKS" --listen "$host:$port" --user segment \
                --out "$results" "$@" &
            coordinator=$!
            trap 'kill -TERM "$coordinator" 2>/dev/null' USR1
            # Slurm sends it to the coordinator too, where a second one would stop it at once.
            trap : TERM

            # It listens, or it has ended: then no segment starts.
            until (exec 3<>"/dev/tcp/$host/$port") 2>/dev/null; do
                kill -0 "$coordinator" 2>/dev/null || break
                sleep 0.2
            done
            tasks=
            if kill -0 "$coordinator" 2>/dev/null; then
                # A segment that ends leaves the others to the coordinator. Not all versions of srun ask sbatch for the CPUs.
                srun --export=ALL --kill-on-bad-exit=0 --wait=0 --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" --label \
                    bash -c 'exec "$0" run "$1" --segment auto --coordinator "$2" --out "$3/$SLURM_PROCID" --quiet "${@:4}"' \
                    "$clamor" "$scenario" "mqtt://segment@$host:$port" "$segments" "$@" &
                tasks=$!
            fi

            # A signal ends a wait, but not the coordinator.
            while kill -0 "$coordinator" 2>/dev/null; do wait "$coordinator"; done
            wait "$coordinator"
            status=$?
            if [ -n "$tasks" ] && [ "$status" -ge 128 ]; then
                echo "The coordinator was killed; the segments finish: clamor merge $segments/*" >&2
                while kill -0 "$tasks" 2>/dev/null; do wait "$tasks"; done
            elif [ -n "$tasks" ]; then
                # Segments that are not needed any more end by themselves; with this script Slurm ends all others.
                for _ in {1..60}; do kill -0 "$tasks" 2>/dev/null && sleep 1; done
            fi
            exit "$status"

            """#
    }

    /// The variables as words of a shell.
    private var given: String { self.arguments(file: "").dropFirst().map(Self.quoted).joined(separator: " ") }

    /// Time for the job: hours, minutes, seconds.
    private var limit: String {
        // Ten minutes until all have joined and connected.
        let minutes = ((self.length ?? 86_400) + 59) / 60 + 10
        return "\(minutes / 60):\(minutes % 60 < 10 ? "0" : "")\(minutes % 60):00"
    }

    /// A path on a line of comments.
    private static func line(_ path: String) -> String { self.quoted(path) }

    /// A word of a shell.
    private static func quoted(_ word: String) -> String {
        let isPlain = word.allSatisfy {
            $0.isASCII && ($0.isLetter || $0.isNumber || "_./%+-@:=,".contains($0))
        }
        return isPlain && !word.isEmpty ? word : "'\(word.replacing("'", with: #"'\''"#))'"
    }
}

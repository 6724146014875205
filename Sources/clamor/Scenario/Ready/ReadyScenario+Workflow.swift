extension ReadyScenario {
    /// A workflow that runs a scenario on every pull request.
    package static let workflow = """
        # Runs a load on every pull request, and fails when a threshold of the scenario fails (exit code 99), and when the
        # run says nothing about the broker: the runner was the limit (98), or messages could not be accounted for (97).
        name: load
        on: [pull_request]
        permissions: { contents: read }
        jobs:
          load:
            runs-on: ubuntu-24.04
            env:
              # Variables of the repository: where Clamor is released (OWNER/NAME), the version such as 0.1.0, and the
              # SHA-256 of its tarball, from SHA256SUMS of the release. A fixed version makes runs comparable.
              REPOSITORY: ${{ vars.CLAMOR_REPOSITORY }}
              VERSION: ${{ vars.CLAMOR_VERSION }}
              SHA256: ${{ vars.CLAMOR_SHA256 }}
            steps:
              - uses: actions/checkout@v5
              # The broker under test; leave this out with TARGET=embedded.
              - run: sudo apt-get update && sudo apt-get install -y mosquitto && /usr/sbin/mosquitto -d -p 1884
              - run: |
                  name="clamor-$VERSION-linux-amd64"
                  curl -fsSLO "https://github.com/$REPOSITORY/releases/download/v$VERSION/$name.tar.gz"
                  echo "$SHA256  $name.tar.gz" | sha256sum --check
                  tar -C "$RUNNER_TEMP" -xzf "$name.tar.gz"
                  echo "$RUNNER_TEMP/$name/bin" >> "$GITHUB_PATH"
              - run: clamor run fleet.yaml --strict --out load --set TARGET=mqtt://127.0.0.1:1884
              - uses: actions/upload-artifact@v6
                if: always()
                with: { name: load, path: load }

        """
}

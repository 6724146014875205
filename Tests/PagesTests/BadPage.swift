import Testing

/// A small page with one fault: the checks of the browser have to find it.
struct BadPage: Sendable, CustomTestStringConvertible {
    var name: String
    /// What has to be found.
    var checks: Set<String>
    var body: String
    var figures: [String] = []
    /// Whether it says what every other one says.
    var hasWords = true

    var testDescription: String { self.name }
    var page: Browser.Page {
        let words = self.hasWords ? "<h1>Run</h1><p>\(Self.words)</p>" : ""
        return Browser.Page(name: self.name, html: Self.html(words + self.body), figures: self.figures)
    }

    private static let words =
        "Offered 12,345 and acknowledged 12,340; the p99 of acknowledgements was 3.42 ms, and nothing was lost."

    private static func html(_ body: String) -> String {
        """
        <!doctype html><html lang="en"><head><meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1"><title>Run</title>
        <style>:root { color-scheme: light dark; background: light-dark(#fff, #121212); color: light-dark(#111, #eee) }
        body { font: 16px sans-serif; margin: 8px } a { color: light-dark(#00c, #9ab8ff) }</style>
        </head><body><main>\(body)</main></body></html>
        """
    }

    /// Among what looks like a fault and is none.
    static let good = Browser.Page(
        name: "good",
        html: Self.html(
            """
            <h1>Run</h1><p>\(Self.words)</p>
            <section><h2>Rates</h2><svg width="300" height="80" role="img" aria-label="rates">
            <text x="10" y="20" fill="currentColor">sent</text><path d="M0 40L300 60" fill="none" stroke="#888"/></svg></section>
            <details><summary>Rows</summary><div style="overflow-x: auto" tabindex="0" role="region" aria-label="rows">
            <table style="width: 1500px"><tr><th scope="col">n</th><th scope="col">wide</th></tr><tr><td>1</td>
            <td>2</td></tr></table></div></details>
            <p style="overflow: hidden; text-overflow: ellipsis; white-space: nowrap" title="\(Self.words)\(Self.words)">
            \(Self.words)\(Self.words)</p>
            <p><a href="https://mqtt.org/">MQTT</a></p><script>document.body.dataset.ready = "1"</script>
            """
        ),
        figures: ["12,345", "3.42 ms"]
    )

    static let all: [BadPage] = [
        BadPage(name: "a blank page", checks: ["blank"], body: "<div style=\"height: 300px\"></div>", hasWords: false),
        BadPage(
            name: "two texts on each other",
            checks: ["overlap"],
            body: """
                <div style="position: relative; height: 3em"><span style="position: absolute; left: 0">first label</span>
                <span style="position: absolute; left: 30px">second label</span></div>
                """
        ),
        BadPage(
            name: "two labels of a drawing on each other",
            checks: ["overlap"],
            body: """
                <svg width="300" height="80" role="img" aria-label="rates"><path d="M0 40L300 60" stroke="#888"/>
                <text x="10" y="20" fill="currentColor">10,000</text><text x="40" y="22" fill="currentColor">12,000</text></svg>
                """
        ),
        BadPage(
            name: "a label that its drawing cuts",
            checks: ["clipped"],
            body: """
                <svg width="100" height="80" role="img" aria-label="rates"><path d="M0 40L100 60" stroke="#888"/>
                <text x="60" y="20" fill="currentColor">acknowledged</text></svg>
                """
        ),
        BadPage(
            name: "a text that its box cuts",
            checks: ["clipped"],
            body: #"<p style="width: 60px; overflow: hidden; white-space: nowrap">acknowledged and received</p>"#
        ),
        BadPage(
            name: "a name with an ellipsis and nowhere the whole",
            checks: ["clipped"],
            body: """
                <p style="width: 60px; overflow: hidden; white-space: nowrap; text-overflow: ellipsis">a group's name</p>
                """
        ),
        BadPage(
            name: "a page wider than its window",
            checks: ["page"],
            body: #"<p style="width: 1400px">A paragraph that is wide.</p>"#
        ),
        BadPage(
            name: "a drawing of axes alone",
            checks: ["empty"],
            body: """
                <svg width="300" height="80" role="img" aria-label="rates"><g class="axis">
                <path d="M0 0L0 80" stroke="#888"/><text x="10" y="20" fill="currentColor">10,000</text></g></svg>
                """
        ),
        BadPage(
            name: "a tool that stands on a text under the pointer",
            checks: ["overlap"],
            body: """
                <style>.hint { position: absolute; top: 0; left: 0; opacity: 0 } div:hover > .hint { opacity: 1 }</style>
                <div style="position: relative; padding-top: 30px"><span class="hint">Copy this chart</span>
                <span style="position: absolute; top: 0; left: 0">latency of answers</span>
                <svg width="300" height="80" role="img" aria-label="rates"><path d="M0 40L300 60" stroke="#888"/></svg></div>
                """
        ),
        BadPage(
            name: "a script that fails under the pointer",
            checks: ["script"],
            body: """
                <svg width="300" height="80" role="img" aria-label="rates"><path d="M0 40L300 60" stroke="#888"/></svg>
                <script>document.querySelector("svg").onpointermove = () => undefined.sorted()</script>
                """
        ),
        BadPage(
            name: "an axis of two equal ticks",
            checks: ["axis"],
            body: """
                <svg width="300" height="80" role="img" aria-label="latency"><path d="M0 40L300 60" stroke="#888"/>
                <g class="yaxis"><text class="tick" x="5" y="20" fill="currentColor">2 ms</text>
                <text class="tick" x="5" y="60" fill="currentColor">2 ms</text></g></svg>
                """
        ),
        BadPage(
            name: "an axis of one tick",
            checks: ["axis"],
            body: """
                <svg width="300" height="80" role="img" aria-label="latency"><path d="M0 40L300 60" stroke="#888"/>
                <g class="yaxis"><text class="tick" x="5" y="20" fill="currentColor">0</text></g></svg>
                """
        ),
        BadPage(
            name: "a table of headings alone",
            checks: ["empty"],
            body: #"<table><thead><tr><th scope="col">client</th></tr></thead><tbody></tbody></table>"#
        ),
        BadPage(
            name: "a section of a heading alone",
            checks: ["empty"],
            body: "<section><h2>Slowest messages</h2></section>"
        ),
        BadPage(
            name: "a picture from elsewhere",
            checks: ["request"],
            body: #"<img src="http://127.0.0.1:9/logo.png" alt="logo" width="10" height="10">"#
        ),
        BadPage(
            name: "a script that fetches",
            checks: ["request"],
            body: #"<script>fetch("http://127.0.0.1:9/beacon").catch(() => 0)</script>"#
        ),
        BadPage(
            name: "a script that fails",
            checks: ["script"],
            body: "<script>undefined.sorted()</script>"
        ),
        BadPage(
            name: "a figure that a script writes",
            checks: ["scripts off"],
            body: #"<p id="late">-</p><script>document.getElementById("late").textContent = "p99 4.56 ms"</script>"#
        ),
        BadPage(
            name: "a figure that is missing",
            checks: ["figure"],
            body: "",
            figures: ["12,346"]
        ),
        BadPage(
            name: "a text too faint",
            checks: ["axe"],
            body: #"<p style="color: #aaa; background: #fff">A remark.</p>"#
        ),
        BadPage(
            name: "a text too faint in the dark alone",
            checks: ["axe"],
            body: #"<p style="color: light-dark(#222, #333)">A remark.</p>"#
        ),
        BadPage(
            name: "a label too faint",
            checks: ["contrast"],
            body: """
                <svg width="300" height="80" role="img" aria-label="rates"><path d="M0 40L300 60" stroke="#888"/>
                <text x="10" y="20" fill="#888" fill-opacity="0.6">10,000</text></svg>
                """
        ),
        BadPage(
            name: "a drawing without a name",
            checks: ["axe"],
            body: ##"<svg width="300" height="80" role="img"><path d="M0 40L300 60" stroke="#888"/></svg>"##
        ),
    ]
}

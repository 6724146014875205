import Mustache

/// The frame that every page has: badges, one sentence, tiles, sections.
package struct PageLayout {
    /// The title of the window.
    package var title: String
    /// The command that made the results, such as `clamor run`.
    package var kind: String
    package var heading: String
    /// The load of a run in one line.
    package var load: String?
    /// Server, tags, date.
    package var facts: [String] = []
    package var badges: [PageBadge] = []
    package var lead: PageLead?
    /// Reasons against the figures.
    package var remarks: [PageRemark] = []
    package var tiles: [PageTile] = []
    package var sections: [PageSection] = []
    package var footer: [String] = []
    /// The figures for the script; see ``PageData``.
    package var data: String?
    /// The head as Markdown, to be copied.
    package var markdown: String?
    /// Whether the page is of a running run, and follows it.
    package var isLive = false

    package func text() throws -> String { try self.render("layout") }

    /// Its header and its content, to replace those of the page that a browser shows.
    package func body() throws -> String { try self.render("body") }

    private func render(_ template: String) throws -> String {
        var library = MustacheLibrary()
        let parts = [
            ("layout", PackageResources.layout_mustache), ("body", PackageResources.body_mustache),
            ("section", PackageResources.section_mustache),
        ]
        for (name, bytes) in parts {
            library.register(try MustacheTemplate(string: String(decoding: bytes, as: UTF8.self)), named: name)
        }
        return library.render(self.context, withTemplate: template) ?? ""
    }

    private var context: [String: Any] {
        var context: [String: Any] = [
            "title": self.title, "kind": self.kind, "heading": self.heading, "facts": self.facts,
            "hasFacts": !self.facts.isEmpty, "badges": self.badges.map(\.context),
            "hasRemarks": !self.remarks.isEmpty, "remarks": self.remarks.map(\.context),
            "hasTiles": !self.tiles.isEmpty, "isSix": self.tiles.count <= 6, "tiles": self.tiles.map(\.context),
            "sections": self.sections.map(\.context), "footer": self.footer,
            "style": String(decoding: PackageResources.style_css, as: UTF8.self),
            "script": String(
                decoding: self.isLive ? PackageResources.live_js : PackageResources.script_js,
                as: UTF8.self
            ),
            "isLive": self.isLive,
        ]
        context["lead"] = self.lead?.context
        context["load"] = self.load
        context["data"] = self.data
        context["markdown"] = self.isLive ? nil : self.markdown
        return context
    }
}

/// A colour with a meaning; a sign or a word is always beside it.
package enum PageTone: String, Sendable {
    case good, warn, bad, plain

    var sign: String {
        switch self {
        case .good: "✓"
        case .warn: "!"
        case .bad: "✗"
        case .plain: ""
        }
    }
}

/// A verdict in a word.
package struct PageBadge {
    package var label: String
    package var state: String
    package var tone: PageTone

    var context: [String: Any] {
        ["label": self.label, "state": self.state, "tone": self.tone.rawValue, "sign": self.tone.sign]
    }
}

/// The result in one sentence, with a link to its evidence.
package struct PageLead {
    package var text: String
    package var tone: PageTone
    /// The anchor and the words of the link.
    package var evidence: (href: String, text: String)?

    var context: [String: Any] {
        ["text": self.text, "tone": self.tone.rawValue, "href": self.evidence?.href, "link": self.evidence?.text]
            .compactMapValues(\.self)
    }
}

package struct PageRemark {
    package var text: String
    /// The code for programs and searches.
    package var code: String?

    var context: [String: Any] { ["text": self.text, "code": self.code].compactMapValues(\.self) }
}

/// One key figure with its objective, its course and its worst second.
package struct PageTile {
    package struct Note {
        package var text: String
        package var tone: PageTone

        package init(_ text: String, tone: PageTone = .plain) {
            self.text = text
            self.tone = tone
        }
    }

    package var label: String
    package var value: String?
    package var unit: String?
    /// Several figures instead of one.
    package var rows: [(name: String, value: String)] = []
    package var notes: [Note] = []
    /// An SVG element.
    package var spark: String?
    package var worst: String?
    package var tone = PageTone.plain

    package init(_ label: String, value: String? = nil, unit: String? = nil) {
        self.label = label
        self.value = value
        self.unit = unit
    }

    /// Its values under their names.
    var figures: [[String]] {
        let value = self.value.map { [[self.label, [$0, self.unit].compactMap(\.self).joined(separator: " ")]] } ?? []
        return value + self.rows.map { ["\(self.label) \($0.name)", $0.value] }
    }

    var context: [String: Any] {
        var context: [String: Any] = [
            "label": self.label, "tone": self.tone.rawValue, "hasRows": !self.rows.isEmpty,
            "rows": self.rows.map { ["name": $0.name, "value": $0.value] },
            "notes": self.notes.map { note in
                var part = ["text": note.text, "tone": note.tone.rawValue]
                if note.tone != .plain { part["sign"] = note.tone.sign }
                return part
            },
            "spark": self.spark ?? "",
        ]
        context["value"] = self.value
        context["unit"] = self.unit
        context["worst"] = self.worst
        return context
    }
}

/// A part of a page, below its first screen folded unless something in it is abnormal.
package struct PageSection {
    /// The anchor.
    package var id: String
    package var title: String
    /// The content in a few words, beside the title of a folded section.
    package var summary: String?
    package var tone = PageTone.plain
    package var isFolded = false
    package var isOpen = true
    package var html: String

    /// A section that cannot be folded.
    package init(_ id: String, _ title: String, html: String) {
        self.id = id
        self.title = title
        self.html = html
    }

    /// A section that can be folded.
    package init(
        folded id: String,
        _ title: String,
        summary: String? = nil,
        tone: PageTone = .plain,
        isOpen: Bool = false,
        html: String
    ) {
        self.init(id, title, html: html)
        self.summary = summary
        self.tone = tone
        self.isFolded = true
        self.isOpen = isOpen
    }

    var context: [String: Any] {
        var context: [String: Any] = [
            "id": self.id, "title": self.title, "tone": self.tone.rawValue, "isFolded": self.isFolded,
            "isOpen": self.isOpen, "html": self.html,
        ]
        context["summary"] = self.summary
        return context
    }
}

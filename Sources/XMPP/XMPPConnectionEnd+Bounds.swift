import DataEncodings
import SASL
import XMPPCodec

extension XMPPConnectionEnd {
    /// The same with shortened texts of the server: thousands of ends are kept, and a server may send long texts.
    var bounded: XMPPConnectionEnd {
        switch self {
        case .webSocket(let text): .webSocket(text.bounded)
        case .streamError(let error): .streamError(error.bounded)
        case .redirected(let host?): host.name.utf8.count > 253 ? .redirected(nil) : self
        case .elsewhere(let place): .elsewhere(place.bounded)
        case .notAuthenticated(let failure):
            .notAuthenticated(XMPPAuthenticationFailure(failure.condition, text: failure.text?.bounded))
        case .tokenRefused(let failure):
            .tokenRefused(XMPPAuthenticationFailure(failure.condition, text: failure.text?.bounded))
        case .tasksRequired(let names): .tasksRequired(names.bounded)
        case .bindRefused(let error): .bindRefused(error.bounded)
        case .sessionRefused(let error): .sessionRefused(error.bounded)
        case .registrationRefused(let error): .registrationRefused(error.bounded)
        case .legacyRefused(let error): .legacyRefused(error.bounded)
        case .foreignServer(let domain): .foreignServer(domain.bounded)
        case .header(let words): .header(words.bounded)
        default: self.boundedOfThisSide
        }
    }

    private var boundedOfThisSide: XMPPConnectionEnd {
        switch self {
        case .noMechanism(.noneShared(let offered)): .noMechanism(.noneShared(offered: offered.bounded))
        case .noMechanism(.notOffered(let name, let offered)): .noMechanism(.notOffered(name, offered: offered.bounded))
        case .noMechanism(.noBinding(let offered)): .noMechanism(.noBinding(offered: offered.bounded))
        case .noMechanism(.bindingStripped(let types)): .noMechanism(.bindingStripped(types.bounded))
        case .serverNotAuthentic(.malformed(let words)): .serverNotAuthentic(.malformed(words.bounded))
        case .serverNotAuthentic(.refused(let words)): .serverNotAuthentic(.refused(words.bounded))
        case .featureMissing(let name): .featureMissing(name.bounded)
        case .featureRequired(let name): .featureRequired(name.bounded)
        case .featureFailed(let words): .featureFailed(words.bounded)
        case .registrationImpossible(.field(let name)): .registrationImpossible(.field(name.bounded))
        case .registrationImpossible(.elsewhere(let place)): .registrationImpossible(.elsewhere(place.bounded))
        case .unexpected(let element, let state): .unexpected(element.bounded, in: state)
        case .violation(let condition, let words): .violation(condition, words.bounded)
        default: self
        }
    }
}

extension StreamError {
    fileprivate var bounded: StreamError {
        var error = self
        error.application = nil
        error.text = error.text?.bounded
        error.language = error.language?.bounded
        error.otherHost = error.otherHost?.bounded
        return error
    }
}

extension StanzaError {
    fileprivate var bounded: StanzaError {
        var error = self
        error.application = nil
        error.text = error.text?.bounded
        error.language = error.language?.bounded
        error.by = error.by?.bounded
        error.address = error.address?.bounded
        return error
    }
}

extension String {
    /// The part that is printed, copied into its own memory.
    fileprivate var bounded: String {
        if self.utf8.count <= OneLine.length { return self }
        // By scalars: a single character may be of any length.
        return String(String.UnicodeScalarView(self.unicodeScalars.prefix(OneLine.length)))
    }
}

extension [String] {
    /// Slightly more names than are printed, so that the text can say that there were more.
    fileprivate var bounded: [String] { self.prefix(32).map(\.bounded) }
}

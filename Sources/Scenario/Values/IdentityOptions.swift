package import SASL

/// How clients prove who they are.
package enum AuthOption: Hashable, Sendable {
    /// User name and password, as far as they are given.
    case password
    /// Enhanced authentication of MQTT 5 (§4.12); user name and password are what SCRAM works with.
    case scram(SCRAMHash)
    /// Alibaba Cloud: the user name is the access key, the password the secret key.
    case aliyun(AliyunOptions)
}

extension SCRAMHash {
    /// Reads `scram-sha-1` or `scram-sha-256`, the mechanisms of `--auth`.
    package init?(word: String) {
        guard let hash = [Self.sha1, .sha256].first(where: { $0.word == word }) else { return nil }
        self = hash
    }

    /// As `--auth` and the plan name it.
    package var word: String { self.mechanism.lowercased() }
}

package struct AliyunOptions: Hashable, Sendable {
    package var groupID: String
    /// `nil`: the old signature, over the group.
    package var instanceID: String?
    /// `R|token|W|token`, from the token file; `nil`: signed with the secret key.
    package var tokens: String?

    package init(groupID: String) { self.groupID = groupID }
}

/// How clients prove who they are.
package enum AuthOption: Hashable, Sendable {
    /// User name and password, as far as they are given.
    case password
    /// Enhanced authentication of MQTT 5 (§4.12); user name and password are what SCRAM works with.
    case scram(ScramHash)
    /// Alibaba Cloud: the user name is the access key, the password the secret key.
    case aliyun(AliyunOptions)

    package enum ScramHash: String, Hashable, Sendable {
        case sha1 = "scram-sha-1"
        case sha256 = "scram-sha-256"
    }
}

package struct AliyunOptions: Hashable, Sendable {
    package var groupID: String
    /// `nil`: the old signature, over the group.
    package var instanceID: String?
    /// `R|token|W|token`, from the token file; `nil`: signed with the secret key.
    package var tokens: String?

    package init(groupID: String) {
        self.groupID = groupID
    }
}

import Foundation

/// Certificates for the tests, made by the `openssl` program: once per process, gone when it ends.
///
/// All keys are ECDSA P-256. Every name is a pair of files: ``certificate(_:)`` and ``key(_:)``.
package struct Certificates: Sendable {
    /// The certificates.
    package enum Name: String, CaseIterable, Sendable {
        /// The authority that signed all but ``stranger`` and ``selfSigned``.
        case authority = "ca"
        /// An authority that no client trusts.
        case otherAuthority = "other-ca"
        /// For `localhost`, `broker.test`, `*.wild.test`, 127.0.0.1 and ::1.
        case server
        /// The same names, signed by an intermediate authority, whose certificate follows in the file.
        case chained
        /// For `elsewhere.test` alone.
        case wrongName = "wrong-name"
        /// Valid in 2020.
        case expired
        /// Valid from 2090 on.
        case notYetValid = "not-yet-valid"
        /// Has no subject alternative name; its common name is `broker.test`.
        case commonName = "common-name"
        /// For 127.0.0.1, `localhost` and all domains of one more label, such as `anon.localhost`.
        case xmpp
        /// The same as an SRVName alone: `_xmpp-client.service.test`; its common name is `broker.test`.
        case serviceName = "service-name"
        /// An XmppAddr alone, `address.test`; its common name is `broker.test`.
        case xmppAddress = "xmpp-address"
        /// For `f*.part.test` and `a.*.part.test`: wildcards that no client may match.
        case partialWildcard = "partial-wildcard"
        /// Signed by itself, for the server's names.
        case selfSigned = "self-signed"
        /// Client certificates; the numbered ones for paths with `%i`.
        case client
        case client1 = "client-1"
        case client2 = "client-2"
        /// A client's, from the other authority.
        case stranger
        /// A client's, valid in 2020.
        case expiredClient = "expired-client"
    }

    /// The directory with all of them.
    package let folder: String

    package func certificate(_ name: Name) -> String { "\(self.folder)/\(name.rawValue).pem" }
    package func key(_ name: Name) -> String { "\(self.folder)/\(name.rawValue).key" }
    /// The certificate as DER.
    package func der(_ name: Name) -> String { "\(self.folder)/\(name.rawValue).der" }
    /// Its key as `sha256/BASE64`.
    package func pin(_ name: Name) throws -> String {
        let text = try String(contentsOfFile: "\(self.folder)/\(name.rawValue).pin", encoding: .utf8)
        return "sha256/\(text.trimmingCharacters(in: .whitespacesAndNewlines))"
    }
    /// The authority's certificate, for those who trust it.
    package var authority: String { self.certificate(.authority) }
    /// The client's certificate and key as PKCS#12, with the passphrase `secret`.
    package var clientBundle: String { "\(self.folder)/client.p12" }
    /// The client's key, encrypted with the passphrase `secret`.
    package var encryptedClientKey: String { "\(self.folder)/client-encrypted.key" }

    /// All of them; made at the first call.
    package static func all() async throws -> Certificates { try await self.made.value }

    private struct NotMade: Error, CustomStringConvertible {
        let description: String
    }

    private static let made = Task { try await Certificates.make() }
    /// Removed when the process ends.
    private static let folder =
        FileManager.default.temporaryDirectory.appending(
            path: "clamor-certificates-\(ProcessInfo.processInfo.processIdentifier)-\(UUID().uuidString)"
        )
        .path()

    /// Certificate and key in one file.
    package func bundle(_ name: Name) throws -> String {
        let path = "\(self.folder)/\(name.rawValue)-bundle.pem"
        let text =
            try String(contentsOfFile: self.certificate(name), encoding: .utf8)
            + String(contentsOfFile: self.key(name), encoding: .utf8)
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }

    private static func make() async throws -> Certificates {
        try FileManager.default.createDirectory(atPath: self.folder, withIntermediateDirectories: true)
        atexit { try? FileManager.default.removeItem(atPath: Certificates.folder) }
        let script = "\(self.folder)/make.sh"
        try self.script.write(toFile: script, atomically: false, encoding: .utf8)
        let program = try RunningProgram("/bin/sh", [script, self.folder])
        let ending = try await program.ended()
        guard ending.status == 0 else { throw NotMade(description: "openssl failed: \(ending.errors)") }
        return Certificates(folder: self.folder)
    }

    // The validity of a certificate can be chosen with `openssl ca` alone.
    private static let script = #"""
        set -e
        cd "$1"
        cat >ca.cnf <<EOF
        [ca]
        default_ca = ours
        [ours]
        dir = .
        database = index
        new_certs_dir = .
        rand_serial = yes
        default_md = sha256
        policy = any
        unique_subject = no
        default_days = 3650
        copy_extensions = none
        [any]
        commonName = supplied
        [req]
        distinguished_name = name
        prompt = no
        [name]
        commonName = unused
        [authority]
        basicConstraints = critical, CA:TRUE
        keyUsage = critical, keyCertSign, cRLSign
        subjectKeyIdentifier = hash
        [server]
        basicConstraints = critical, CA:FALSE
        extendedKeyUsage = serverAuth
        subjectAltName = DNS:localhost, DNS:broker.test, DNS:*.wild.test, IP:127.0.0.1, IP:::1
        [elsewhere]
        basicConstraints = critical, CA:FALSE
        extendedKeyUsage = serverAuth
        subjectAltName = DNS:elsewhere.test
        [xmpp]
        basicConstraints = critical, CA:FALSE
        extendedKeyUsage = serverAuth
        subjectAltName = DNS:localhost, DNS:*.localhost, IP:127.0.0.1, otherName:1.3.6.1.5.5.7.8.5;UTF8:localhost
        [service]
        basicConstraints = critical, CA:FALSE
        extendedKeyUsage = serverAuth
        subjectAltName = otherName:1.3.6.1.5.5.7.8.7;IA5:_xmpp-client.service.test, otherName:1.3.6.1.5.5.7.8.7;IA5:_xmpp-server.peer.test
        [address]
        basicConstraints = critical, CA:FALSE
        extendedKeyUsage = serverAuth
        subjectAltName = @addresses
        [partial]
        basicConstraints = critical, CA:FALSE
        extendedKeyUsage = serverAuth
        subjectAltName = DNS:f*.part.test, DNS:a.*.part.test
        [addresses]
        otherName.1 = 1.3.6.1.5.5.7.8.5;UTF8:address.test
        otherName.2 = 1.3.6.1.5.5.7.8.5;FORMAT:UTF8,UTF8:wörld.test
        [nameless]
        basicConstraints = critical, CA:FALSE
        extendedKeyUsage = serverAuth
        [client]
        basicConstraints = critical, CA:FALSE
        extendedKeyUsage = clientAuth
        EOF
        : >index

        authority() { # file, common name
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.pem" \
                -subj "/CN=$2" -days 3650 -config ca.cnf -extensions authority
        }
        leaf() { # file, common name, extensions, authority, then options of openssl ca
            file=$1 name=$2 extensions=$3 authority=$4
            shift 4
            openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$file.key" -out "$file.csr" \
                -subj "/CN=$name" -config ca.cnf
            openssl ca -batch -notext -config ca.cnf -cert "$authority.pem" -keyfile "$authority.key" \
                -in "$file.csr" -out "$file.pem" -extensions "$extensions" "$@"
        }
        past="-startdate 20200101000000Z -enddate 20200201000000Z"
        authority ca "Clamor Test CA"
        authority other-ca "Other Test CA"
        leaf server broker.test server ca
        leaf intermediate "Clamor Intermediate CA" authority ca
        leaf chained broker.test server intermediate
        cat intermediate.pem >>chained.pem
        leaf wrong-name elsewhere.test elsewhere ca
        leaf expired broker.test server ca $past
        leaf not-yet-valid broker.test server ca -startdate 20900101000000Z -enddate 20910101000000Z
        leaf common-name broker.test nameless ca
        leaf xmpp localhost xmpp ca
        leaf service-name broker.test service ca
        leaf xmpp-address broker.test address ca
        leaf partial-wildcard foo.part.test partial ca
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout self-signed.key \
            -out self-signed.pem -subj /CN=broker.test -days 3650 -config ca.cnf -extensions server
        for file in client client-1 client-2; do leaf $file $file client ca; done
        leaf stranger stranger client other-ca
        leaf expired-client expired-client client ca $past
        for file in ca other-ca server chained wrong-name expired not-yet-valid common-name self-signed client \
            xmpp service-name xmpp-address partial-wildcard \
            client-1 client-2 stranger expired-client; do
            openssl x509 -in $file.pem -outform DER -out $file.der
            openssl pkey -in $file.key -pubout -outform DER | openssl dgst -sha256 -binary | openssl base64 >$file.pin
        done
        openssl pkcs12 -export -in client.pem -inkey client.key -out client.p12 -passout pass:secret
        openssl pkcs8 -topk8 -in client.key -out client-encrypted.key -passout pass:secret
        chmod a+rx . && chmod a+r ./*
        """#
}

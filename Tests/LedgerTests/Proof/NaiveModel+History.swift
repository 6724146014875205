import Ledger

extension NaiveModel {
    // MARK: - The presence of a target

    /// When a target was there, as one publisher's loop knows it.
    struct History {
        enum Verdict {
            case due, excused, sessionLost, fresh
        }

        let leaves: [Leave]
        private let notices: [VirtualRun.Notice: Int]
        private let target: Target
        /// The target was away at the end, or one of its members.
        private let absent: [UInt64]

        init(_ model: NaiveModel, _ client: Int, _ target: Target) {
            self.target = target
            self.leaves = model.leaves[target] ?? []
            let loop = client % model.plan.loops
            var notices: [VirtualRun.Notice: Int] = [:]
            for (at, of, notice) in model.notices[target] ?? [] where of == loop { notices[notice] = at }
            self.notices = notices
            self.absent = model.run.absent.compactMap { client, visit in
                switch target {
                case .client(let own) where own == client: return UInt64(visit)
                case .share(let share) where model.plan.group(of: client).share == share:
                    return model.plan.group(of: client).keepsSessions ? VirtualRun.memberVisit(client, visit) : nil
                default: return nil
                }
            }
        }

        private func at(_ visit: UInt64, _ event: PresenceMark.Event) -> Int? {
            self.notices[VirtualRun.Notice(target: self.target, visit: visit, event: event)]
        }

        /// Judges one message at QoS 1 or 2; `heads` has, by leave, the last one of the line that had arrived by then.
        func verdict(sent: Int, ordinal: Int, heads: [Int]) -> Verdict {
            // Rules 2 and 4: nothing before the first SUBACK.
            guard let began = self.at(0, .began), sent > began else { return .excused }
            var isSessionLost = false
            for (place, leave) in self.leaves.enumerated() where ordinal > heads[place] {
                // Not overtaken when the client left: it may have been in a session that ended.
                let ends = [self.at(leave.visit + 1, .began), self.at(leave.visit, .closed)]
                if ends.contains(where: { $0.map { sent < $0 } ?? false }) { return .excused }
                if self.absent.contains(leave.visit) { return .excused }
                if let found = self.at(leave.visit + 1, .beganWithoutSession), sent < found { isSessionLost = true }
            }
            if self.isWithoutMembers(sent) { return .excused }
            if isSessionLost { return .sessionLost }
            return self.isFresh(sent) ? .fresh : .due
        }

        /// Whether the target had a subscription in effect at any time.
        var hasBegun: Bool { self.at(0, .began) != nil }

        /// Whether a target that was there when this was sent has had another connection since, or has gone.
        func isBeforeReturn(_ sent: Int) -> Bool {
            !self.absent.isEmpty
                || self.notices.contains { notice, at in
                    let isReturn = [.began, .resumed, .beganWithoutSession].contains(notice.event)
                    return isReturn && notice.visit > 0 && sent < at
                }
        }

        /// Rule 1: on a connection that broke, or before the next one.
        func isOverBrokenConnection(_ sent: Int) -> Bool {
            !self.absent.isEmpty
                || self.notices.contains { notice, at in
                    switch notice.event {
                    case .began where notice.visit == 0: false
                    case .began, .resumed, .beganWithoutSession, .closed: sent < at
                    case .left: self.at(notice.visit + 1, .began) == nil
                    case .settled: false
                    }
                }
        }

        /// A share group may have had no member.
        private func isWithoutMembers(_ sent: Int) -> Bool {
            self.notices.contains { notice, at in
                notice.event == .left && sent > at && sent < self.at(notice.visit + 1, .began) ?? .max
            }
        }

        private func isFresh(_ sent: Int) -> Bool {
            self.notices.contains { notice, at in
                guard notice.event == .settled, sent < at else { return false }
                return sent > self.at(notice.visit, .began) ?? self.at(notice.visit, .beganWithoutSession) ?? .max
            }
        }
    }
}

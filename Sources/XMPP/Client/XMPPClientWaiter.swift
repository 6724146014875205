import LoopContext

typealias XMPPClientWaiter<Value: Sendable> = CallWaiter<Value, XMPPClientError>

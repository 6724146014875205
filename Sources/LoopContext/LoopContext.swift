// LoopContext

import Foundation

// SASL2 on prosody, by the modules of Debian's prosody-modules.
extension Prosody {
    /// Whether they are on this machine.
    package static let hasSASL2 = FileManager.default.fileExists(atPath: "/usr/lib/prosody/modules/mod_sasl2")
    /// For `.enabled(if:)`.
    package static let missingSASL2 = "needs prosody-modules: make test installs it"

    static let modulesOfSASL2 = """
        "sasl2", "sasl2_bind2", "sasl2_sm", "sasl2_fast", "csi", "clamor_sasl2",
        """

    /// Writes the module that brings what prosody 0.12 lacks for them, and returns its folder.
    static func writeModule(in folder: ScratchFolder) throws -> String {
        let modules = folder.path("modules")
        try FileManager.default.createDirectory(atPath: modules, withIntermediateDirectories: true)
        try folder.write(self.module, to: "modules/mod_clamor_sasl2.lua")
        return modules
    }

    /// The `from` of the stream header in the event for the features, calls of connection and stanza, times with
    /// fractions, and stream management by function calls; later versions have them, and then nothing is changed.
    private static let module = """
        local filters = require "util.filters";
        local st = require "util.stanza";
        local datetime = require "util.datetime";
        local smacks = module:depends("smacks");

        filters.add_filter_hook(function (session)
            filters.add_filter(session, "bytes/in", function (text)
                if type(text) == "string" then
                    local header = text:match("<stream:stream[^>]*>");
                    if header then session.clamor_from = header:match(" from=['\\"]([^'\\"]*)"); end
                end
                return text;
            end);
        end);

        module:hook("stream-features", function (event)
            event.stream = event.stream or { from = event.origin.clamor_from };
            local connection = event.origin.conn;
            if not connection.ssl_info then
                function connection:ssl_info()
                    local socket = self:socket();
                    return socket.info and socket:info();
                end
            end
        end, 1000);

        if not st.stanza_mt.get_child_attr then
            function st.stanza_mt:get_child_attr(name, xmlns, attribute)
                local child = self:get_child(name, xmlns);
                return child and child.attr[attribute];
            end
        end

        if not st.stanza_mt.add_error then
            function st.stanza_mt:add_error(err)
                return self:tag("error", { type = err.type })
                    :tag(err.condition, { xmlns = "urn:ietf:params:xml:ns:xmpp-stanzas" }):up():up();
            end
        end

        -- Lua 5.4 formats no fractions of a second.
        local format = datetime.datetime;
        if not pcall(format, 1.5) then
            function datetime.datetime(time) return format(time and math.floor(time)); end
        end

        -- What the call sends is kept back.
        local function capture(session, call)
            local kept, send = {}, session.send;
            session.send = function (stanza) kept[#kept + 1] = stanza; return true; end
            call();
            return kept, send;
        end

        if not rawget(smacks, "do_enable") then
            function smacks.do_enable(session, request)
                local kept, send = capture(session, function ()
                    smacks.handle_enable(session, request, request.attr.xmlns);
                end);
                session.send = send;
                local answer = kept[1];
                if answer.name ~= "enabled" then return nil, { type = "cancel", condition = "unexpected-request" }; end
                return { type = "enabled", id = answer.attr.id, resume_max = answer.attr.max, finish = function () end };
            end

            function smacks.do_resume(session, request)
                local resumed;
                local hook = function (event) resumed = event.resumed; end
                module:hook("smacks-hibernation-end", hook);
                local kept, send = capture(session, function ()
                    smacks.handle_resume(session, request, request.attr.xmlns);
                end);
                module:unhook("smacks-hibernation-end", hook);
                local answer = kept[1];
                if not resumed then
                    session.send = send;
                    return nil, {
                        type = "cancel", condition = "item-not-found", context = { h = tonumber(answer.attr.h) }
                    };
                end
                -- Fields of a function are its upvalues here.
                send.session, send.filter = resumed, resumed.filter;
                resumed.send = send;
                -- The module for tokens looks at the session that goes on.
                resumed.sasl_handler, resumed.client_id = session.sasl_handler, session.client_id;
                resumed.fast_token_request = session.fast_token_request;
                return { type = "resumed", id = answer.attr.previd, session = resumed, finish = function ()
                    resumed.resending_unacked = true;
                    for index = 2, #kept do send(kept[index]); end
                    resumed.resending_unacked = nil;
                end };
            end
        end

        """
}

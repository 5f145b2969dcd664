# Varnish before weir: every viewer's request for the same thing becomes one request to weir, also while weir holds it
# back (blocking playlist reload, the hinted part). `varnishd -a :80 -f default.vcl`
vcl 4.1;

import std;

backend weir {
    .host = "127.0.0.1";
    .port = "8080";
    # A held request is answered within three target durations, ten seconds each at most.
    .first_byte_timeout = 40s;
    .between_bytes_timeout = 40s;
    .max_connections = 10000;
}

sub vcl_recv {
    # weir knows no cookies; a browser may have some for this host.
    unset req.http.Cookie;
    if (req.method != "GET" && req.method != "HEAD" && req.method != "OPTIONS") {
        return (synth(405, "Method not allowed"));
    }
    if (req.url ~ "/stream\.mp4(\?|$)") {
        # Endless, and different for each viewer.
        return (pipe);
    }
    if (req.url !~ "^/live/" || req.method == "OPTIONS") {
        return (pass);
    }
    # Playlists differ by three items of the query and nothing else, in whatever order they come; media by none.
    if (req.url ~ "\?") {
        set req.url = std.querysort(req.url);
        set req.url = regsuball(req.url, "([?&])(?!_HLS_(msn|part|skip)=|from=)[^&]*", "\1");
        set req.url = regsuball(req.url, "([?&])&+", "\1");
        set req.url = regsub(req.url, "[?&]+$", "");
    }
    return (hash);
}

sub vcl_backend_response {
    # weir's Cache-Control is the truth; nothing is served beyond it, or a player would see the past.
    set beresp.grace = 0s;
    set beresp.keep = 0s;
    # Bytes go on while they come: a segment in the making reaches all its viewers chunk by chunk.
    set beresp.do_stream = true;
    # An error is nobody's own: the crowd gets it from here for a second. What Varnish does by itself with no-store, send
    # everybody who asks for this address in the next two minutes on to weir, would let one wrong request undo the joining.
    if (beresp.status >= 400) {
        set beresp.ttl = 1s;
        return (deliver);
    }
}

# Varnish before weir: every viewer's request for the same thing becomes one request to weir, also while weir holds it
# back (blocking playlist reload, the hinted part). `varnishd -a :80 -f default.vcl`
# Start weir with `--trusted-proxy` and the address that Varnish asks from: it tells weir the address of each viewer
# (X-Forwarded-For), and wrong tokens count for who sent them.
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
    # Whether a token is good is asked first, once for each token and stream in ten seconds (--viewers-recheck); then the request
    # begins anew (vcl_deliver). All good tokens share the objects (vcl_hash).
    if (req.restarts == 0) {
        unset req.http.X-Weir-URL;
        unset req.http.X-Original-URI;
        # No other letters: what is asked here is decoded, and an escaped slash would move the border of token and path.
        if (req.url ~ "^/~[A-Za-z0-9._~-]+/live/[A-Za-z0-9._-]+/") {
            unset req.http.Authorization;
            set req.http.X-Weir-URL = req.url;
            set req.http.X-Weir-Method = req.method;
            set req.method = "GET";
            set req.url = "/api/v1/authorize?path="
                + regsub(req.url, "^(/~[A-Za-z0-9._~-]+/live/[A-Za-z0-9._-]+/).*$", "\1");
            return (hash);
        }
    }
    # weir knows no cookies; a browser may have some for this host.
    unset req.http.Cookie;
    if (req.method != "GET" && req.method != "HEAD" && req.method != "OPTIONS") {
        return (synth(405, "Method not allowed"));
    }
    # No address that weir names has an escape in its path: another spelling of stream.mp4 would be endless in the cache.
    if (req.url ~ "^(/~[^/?]*)?/live/[^?]*%") {
        return (synth(400, "Bad request"));
    }
    if (req.url ~ "^[^?]*/stream\.mp4(\?|$)") {
        # Endless, and different for each viewer. weir ends it when its token ends.
        return (pipe);
    }
    # Only what was asked for above may have a token and be shared. A bearer is judged by weir, each time.
    if (req.url !~ "^/live/" && !(req.restarts > 0 && req.http.X-Weir-URL)) {
        return (pass);
    }
    if (req.http.Authorization || req.method == "OPTIONS") {
        return (pass);
    }
    # Playlists differ by five items of the query and nothing else, in whatever order they come; media by none. weir gets
    # what is left, so what it answers is what the key says.
    if (req.url ~ "\?") {
        set req.url = std.querysort(req.url);
        set req.url = regsuball(req.url, "([?&])(?!_HLS_(msn|part|skip)=|from=|start=|video=)[^&]*", "\1");
        set req.url = regsuball(req.url, "([?&])&+", "\1");
        set req.url = regsub(req.url, "[?&]+$", "");
    }
    return (hash);
}

sub vcl_hash {
    # Not the objects of requests without a token, which nobody checks here.
    hash_data(regsub(req.url, "^/~[A-Za-z0-9._~-]+/", "~/"));
    if (req.http.host) {
        hash_data(req.http.host);
    } else {
        hash_data(server.ip);
    }
    return (lookup);
}

sub vcl_deliver {
    if (req.http.X-Weir-URL && req.restarts == 0 && resp.status == 204) {
        set req.url = req.http.X-Weir-URL;
        set req.method = req.http.X-Weir-Method;
        return (restart);
    }
}

sub vcl_backend_response {
    # weir's Cache-Control is the truth; nothing is served beyond it, or a player would see the past.
    set beresp.grace = 0s;
    set beresp.keep = 0s;
    # Bytes go on while they come: a segment in the making reaches all its viewers chunk by chunk.
    set beresp.do_stream = true;
    # A token that was refused after all is no answer to the others, nor is what one address has to wait for.
    if (beresp.status == 429 || (bereq.url ~ "^/~" && beresp.status == 403)) {
        set beresp.uncacheable = true;
        set beresp.ttl = 0s;
        return (deliver);
    }
    # An error is nobody's own: the crowd gets it from here for a second. What Varnish does by itself with no-store, send
    # everybody who asks for this address in the next two minutes on to weir, would let one wrong request undo the joining.
    if (beresp.status >= 400) {
        set beresp.ttl = 1s;
        return (deliver);
    }
}

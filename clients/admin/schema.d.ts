// Written by `npm run generate` from schemas/admin-openapi.json.

export interface paths {
    "/v1/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What answers, and who asks
         * @description An orchestrator finds its probes at http.port (/livez and /readyz), and needs no token there. Needs the right `read`. A token with a scope may use it.
         */
        get: operations["health"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/replays/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Count what a replay would send
         * @description Reads Kafka for 20 seconds at the most. Nothing is sent. The body is that of the call that sends. Needs the right `operate`. For a token with a scope, there is only what its scope holds.
         */
        post: operations["preview_replay"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/replays": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List replays, newest first
         * @description Those of the last 90 days. To get the next page, repeat the request with the `cursor` of this page. Needs the right `read`. For a token with a scope, there is only what its scope holds.
         */
        get: operations["list_replays"];
        put?: never;
        /**
         * Send again
         * @description What another replay has sent, or is about to, is left out, unless `again` is true. Counts as a preview does, and then makes the workers send the records again. If the time is too short to count all records, the replay is created nevertheless, and `counted` is null. Needs the right `operate`. For a token with a scope, there is only what its scope holds.
         */
        post: operations["create_replay"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/replays/{replay}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * How far a replay is
         * @description Returns what the owner of the replay noted last. While it sends, the owner notes this four times a second. Needs the right `read`. For a token with a scope, there is only what its scope holds.
         */
        get: operations["show_replay"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/replays/{replay}/stop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Stop a replay
         * @description Its owner stops within two seconds. Records that it has written by then are delivered. Needs the right `operate`. For a token with a scope, there is only what its scope holds.
         */
        post: operations["stop_replay"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/replays/{replay}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Let a stopped replay go on
         * @description The replay goes on where it stopped. Needs the right `operate`. For a token with a scope, there is only what its scope holds.
         */
        post: operations["resume_replay"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/log": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * How far back the delivery log reaches, and how far its index is
         * @description Describes the index that this process asks. This is the index of `index.url`, or else of `clickhouse.url`, or else of `index.folder`. Needs the right `read`. A token with a scope may not use it.
         */
        get: operations["show_log"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/log/messages/{message}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What became of a message
         * @description Returns each delivery of the message, from its first state to its last. The log does not have the content of the message: `origin` names the record of Kafka that has it, and `/v1/log/messages/{message}/content` shows it. Needs the right `read`. For a token with a scope, there is only what its scope holds.
         */
        get: operations["show_message"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/log/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Search the delivery log, newest first
         * @description Finds the records for which all given conditions hold. To get the next page, repeat the request with the `cursor` of this page. If the request had no `from`, add the `from` of the answer. Needs the right `read`. For a token with a scope, there is only what its scope holds.
         */
        post: operations["search_log"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/log/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Count deliveries and their durations by the minute, or by steps and groups
         * @description Counts the states for which all given conditions hold, in ascending order of the minutes. Minutes without such a state are left out. Records count with their weights, so deliveries without a record of their own are counted too. With `step` or `groupBy`, the answer has `times`, `groups` and `others` instead of `minutes`: a list of numbers for each group, so 10,000 destinations fit into one answer. Needs the right `read`. For a token with a scope, there is only what its scope holds.
         */
        post: operations["count_log"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/dead-letters/summary": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Count dead letters by destination and reason
         * @description Counts what has become a dead letter in the time range, by the delivery log. It does not know which of them a replay has sent since: the preview of a replay counts what is left. Times are those of steps, whose length depends on the time range. Needs the right `read`. For a token with a scope, there is only what its scope holds.
         */
        post: operations["summarize_dead_letters"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/log/messages/{message}/content": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What a message contains
         * @description Reads the records of `events` that brought the message, as long as Kafka has them: the first ten, if it was sent several times. `requests` has what its destinations are sent, by the catalog as it is now. A message that was made from a change of an audience or from a deletion has no body here. The call is in the audit trail. Needs the right `read`, and that the token sees content. For a token with a scope, there is only what its scope holds.
         */
        get: operations["show_content"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sources/{source}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show the last events of a source
         * @description Reads the topic of the events from its end backwards, for eight seconds and 200,000 records of all sources at most. The values are as their producers wrote them, before they are checked. There are at most 2 MB of them. The call is in the audit trail. Needs the right `read`, and that the token sees content. For a token with a scope, there is only what its scope holds.
         */
        get: operations["list_source_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Find events by what they say
         * @description Reads the topic of the events in a range of time, as `sluice log scan` does, so it also finds what no index has. An answer is a part of the search: it has read for six seconds or 100,000 records at most. To go on, send the `cursor` of the answer with the same question. To stop, ask no more. Each part is in the audit trail. Needs the right `read`, and that the token sees content. For a token with a scope, there is only what its scope holds.
         */
        post: operations["search_events"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Try a filter and mappings on messages
         * @description Says for each message of the request what a destination with this filter and these mappings would do with it. Nothing is sent or stored, and Kafka is not needed. A filter or a mapping with a fault is answered with 422, which names the fault, and so is one that takes more than two seconds for all messages. Needs the right `read`. A token with a scope may use it.
         */
        post: operations["preview"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sources/{source}/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Try a filter and mappings on the last events of a source
         * @description Reads the last events of the source, as `GET /v1/sources/{source}/events` does, and says for each what a destination with this filter and these mappings would do with it. Nothing is sent. The call is in the audit trail. Needs the right `read`, and that the token sees content. For a token with a scope, there is only what its scope holds.
         */
        post: operations["preview_source"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Which destinations need attention, what waits, and which workers run
         * @description Shows what `sluice status` shows. The server answers from memory, also while Kafka is away: `asOf` says since when the picture is. Needs the right `read`. A token with a scope may not use it.
         */
        get: operations["show_status"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/destinations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the destinations of the catalog
         * @description Lists the destinations with their present states, and with what the workers know of them. The server follows what the workers tell, so it answers at once, and also while Kafka is away: `asOf` says since when the picture is. Secrets, headers and the paths of URLs are not shown. For the next part of the list, send the `cursor` of the answer. Needs the right `read`. For a token with a scope, there is only what its scope holds.
         */
        get: operations["list_destinations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/destinations/{destination}/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * How a destination is
         * @description Says which URLs of a destination fail, since when and with what answers, how requests log in, how much waits, and when it is tried next. Needs the right `read`. For a token with a scope, other destinations do not exist.
         */
        get: operations["show_destination_health"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/destinations/{destination}/signing-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The public keys of a destination
         * @description Returns the public keys of Ed25519 with which receivers verify signatures (v1a), as a set of JSON Web Keys. The gateway serves the same to everybody (`GET /v1/signing-keys/{destination}`). The list is empty if the destination has none. Needs the right `read`. For a token with a scope, other destinations do not exist.
         */
        get: operations["show_signing_keys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/destinations/{destination}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a test message to a destination
         * @description Sends one message to the URLs of a destination, as a worker with the same settings would. The request also has the header `X-Sluice-Test: true`. The state, the filter and the rate limit of the destination do not stop it. The delivery log does not have it. Kafka is not needed. For the defaults, send `{}`. Needs the right `operate`. For a token with a scope, other destinations do not exist.
         */
        post: operations["test_destination"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/paused-destinations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List destinations that Sluice has paused
         * @description Sluice pauses a destination when all of its URLs have failed for the time in its `autoPause` or in `notices.autoPause`, or have answered 410 (Gone). Its messages wait until somebody resumes the destination. With `notices.whileAutoPaused=dead-letter`, they become dead letters (`auto_paused`). The list does not have destinations that are paused in the catalog. Needs the right `read`. For a token with a scope, there is only what its scope holds.
         */
        get: operations["list_paused"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/destinations/{destination}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Resume a destination that Sluice has paused
         * @description Sluice sends to it again, first the messages that have waited. A URL that has answered 410 (Gone) is asked again. Messages that became dead letters meanwhile (`auto_paused`) stay dead letters until a replay. Needs the right `operate`. For a token with a scope, other destinations do not exist.
         */
        post: operations["resume_destination"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/destinations/{destination}/retry-now": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Try now what waits for a retry
         * @description Workers try the messages of a destination that wait on the retry topics after failed tries, without waiting for their next try. They begin with a few, and go on as these arrive. If too many fail, the rest keeps its time. No message is tried twice. Messages far behind the oldest message of a retry topic keep their time too. For all messages, send `{}`. Needs the right `operate`. For a token with a scope, other destinations do not exist.
         */
        post: operations["retry_destination"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/destinations/{destination}/drop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Make dead letters of what waits
         * @description Workers make dead letters of the messages of a destination that wait now, in its queue and on the retry topics. Their `reason` is `dropped`, and a replay sends them after all. Requests in flight end as they would. Messages that come later are not dropped. Messages far behind the oldest message of a retry topic keep their next try. Ask with `dryRun` first: it says how many wait. Needs the right `operate`. For a token with a scope, other destinations do not exist.
         */
        post: operations["drop_destination"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/destinations/bulk": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Do the same to many destinations
         * @description Pauses, resumes or labels all selected destinations in one change of the catalog, of 5,000 destinations at most, or tries now what waits for 200 of them at most. `pause`, `resume` and `label` need the right `admin`, and the catalog in its topic. A destination must meet each condition of the selection. Ask with `dryRun` first: it says to which it would be done. `resume` is about destinations that are paused in the catalog. What Sluice has paused is resumed one by one. A repetition with the same `Idempotency-Key` names only what the first request changed, and nothing that it skipped. `retry-now` takes no key, because a repetition does no harm. Needs the right `operate`. For a token with a scope, there is only what its scope holds.
         */
        post: operations["change_destinations"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/audiences": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What audiences have, and which destinations lack something
         * @description Lists the sources of kind `audiences` (spaces), with counts of their values, the first syncs that run, and the destinations that need a backfill, as far as workers tell. The server answers from memory, also while Kafka is away. Needs the right `read`. For a token with a scope, there is only what its scope holds.
         */
        get: operations["list_audiences"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/destinations/{destination}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show a destination of the catalog
         * @description As it is in the topic of the catalog (`catalog.source=topic`). Secrets, server keys and the values of headers are shown as `${kept:…}`. If you send such a text back, the value stays as it is. The paths of URLs are shown only to tokens with the right `admin`. Needs the right `read`. For a token with a scope, there is only what its scope holds.
         */
        get: operations["show_destination"];
        /**
         * Make or replace a destination
         * @description Running processes use the change within a second. Secrets, server keys and the values of headers are shown as `${kept:…}`. If you send such a text back, the value stays as it is. The fields are those of docs/catalog.md. Needs the right `admin`. For a token with a scope, there is only what its scope holds.
         */
        put: operations["put_destination"];
        post?: never;
        /**
         * Remove a destination
         * @description What waits for it becomes dead letters (`destination_removed`). Needs the right `admin`. For a token with a scope, there is only what its scope holds.
         */
        delete: operations["remove_destination"];
        options?: never;
        head?: never;
        /**
         * Change fields of a destination
         * @description A JSON merge patch (RFC 7396): a field that is `null` is removed, and a list is replaced as a whole. Secrets, server keys and the values of headers are shown as `${kept:…}`. If you send such a text back, the value stays as it is. A hook that takes the place of another one, with the same `id` or without one, has to say what becomes of the headers, the login and the `tls` of that: send them to keep them, or `null` to remove them. Otherwise, the answer is 422, and nothing is changed. Needs the right `admin`. For a token with a scope, there is only what its scope holds.
         */
        patch: operations["patch_destination"];
        trace?: never;
    };
    "/v1/sources": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the sources of the catalog
         * @description In the order of their ids. Keys are not shown. Needs the right `read`. For a token with a scope, there is only what its scope holds.
         */
        get: operations["list_sources"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sources/{source}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show a source of the catalog
         * @description As it is in the topic of the catalog (`catalog.source=topic`). Secrets, server keys and the values of headers are shown as `${kept:…}`. If you send such a text back, the value stays as it is. The paths of URLs are shown only to tokens with the right `admin`. Needs the right `read`. For a token with a scope, there is only what its scope holds.
         */
        get: operations["show_source"];
        /**
         * Make or replace a source
         * @description Running processes use the change within a second. Secrets, server keys and the values of headers are shown as `${kept:…}`. If you send such a text back, the value stays as it is. The fields are those of docs/catalog.md. Needs the right `admin`. A token with a scope may not use it.
         */
        put: operations["put_source"];
        post?: never;
        /**
         * Remove a source
         * @description Refused while a destination is connected to it. Needs the right `admin`. A token with a scope may not use it.
         */
        delete: operations["remove_source"];
        options?: never;
        head?: never;
        /**
         * Change fields of a source
         * @description A JSON merge patch (RFC 7396): a field that is `null` is removed, and a list is replaced as a whole. Secrets, server keys and the values of headers are shown as `${kept:…}`. If you send such a text back, the value stays as it is. Needs the right `admin`. A token with a scope may not use it.
         */
        patch: operations["patch_source"];
        trace?: never;
    };
    "/v1/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the tokens
         * @description In the order of their names. The tokens themselves are stored nowhere. A token with a scope sees the tokens that may not see more than it. Needs the right `admin`. For a token with a scope, there is only what its scope holds.
         */
        get: operations["list_tokens"];
        put?: never;
        /**
         * Make a token
         * @description The answer has the token itself, which nobody can read again. It works at once. It may not do more than the token of the request: not by its right, not by its scope, and not for longer. If the token of the request has a scope, the name begins with the name of that token and a dot, and the scope takes over what it leaves open. Needs the right `admin`. For a token with a scope, there is only what its scope holds.
         */
        post: operations["create_token"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tokens/{token}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke a token
         * @description The process that answers refuses it from now on, also on open connections, and all others within a second. Tokens that were made with it stay. Needs the right `admin`. For a token with a scope, there is only what its scope holds.
         */
        delete: operations["remove_token"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List who is signed in
         * @description The sessions that are in force, by name, the oldest of a name first. Nothing has their secrets. A token with a scope sees the sessions that may not see more than it. For the next part of the list, send the `cursor` of the answer. Needs the right `admin`. For a token with a scope, there is only what its scope holds.
         */
        get: operations["list_sessions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{session}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * End a session
         * @description On this process at once, and on all others within a second. Live views end with it. The audit trail says who has ended it. Needs the right `admin`. For a token with a scope, there is only what its scope holds.
         */
        delete: operations["remove_session"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/of/{holder}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * End all sessions of a person, a token or a link
         * @description On this process at once, and on all others within a second. Live views end with it. Codes that would begin another session are used up too. It keeps nobody from signing in again: revoke the token or the link for this, or take the right away from the person at the provider. Needs the right `admin`. For a token with a scope, there is only what its scope holds.
         */
        delete: operations["remove_sessions"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Who is signed in
         * @description Also answers to a token. Needs the right `read`. A token with a scope may use it.
         */
        get: operations["show_session"];
        put?: never;
        /**
         * Sign in
         * @description Sets the cookie of a new session, with the rights and the scope of the token. The session ends with the token. Whoever sends many wrong tokens has to wait. It needs no token.
         */
        post: operations["sign_in"];
        /**
         * Sign out
         * @description Ends the session, on this process at once and on all others within a second. Needs the right `read`. A token with a scope may use it.
         */
        delete: operations["sign_out"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/session/codes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Make a code that signs in
         * @description The code signs in once, as the token of the request, within a minute: open `console/#code=CODE`. `sluice console` makes such a link. A session can make none. Needs the right `read`. A token with a scope may use it.
         */
        post: operations["create_code"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/links": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the links of customers
         * @description Those that have not ended, the newest first. Nothing has the links themselves. Needs the right `operate`. For a token with a scope, there is only what its scope holds.
         */
        get: operations["list_links"];
        put?: never;
        /**
         * Make a link for a customer
         * @description Whoever has the link signs in to the console, sees what has the label, and does what `rights` name, until it ends or is revoked. Without the right `admin`, a token needs a scope with this label, and gives no more than it may do itself. Needs the right `operate`. For a token with a scope, there is only what its scope holds.
         */
        post: operations["create_link"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/links/{link}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke a link
         * @description All sessions that it has begun end too: on the process that answers at once, and on the others within a second. Needs the right `operate`. For a token with a scope, there is only what its scope holds.
         */
        delete: operations["remove_link"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/live": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * See what happens, as it does
         * @description Server-sent events, twice a second. `attempt`: a record of the delivery log, as `POST /v1/log/search` has it. `skipped`: a view is told at most 5 attempts a second, after a first 60, and there were more; `{count}` says how many. `destination`: how the destination of the view is, as `GET /v1/destinations/{destination}/health` has it, first and then when it has changed, so there is no need to ask. `health`: `{destination, condition, since}` of a destination whose condition has changed. `replay`: a replay that has gone on, as `GET /v1/replays/{replay}` has it. `ready` comes first, and all that happens from then on is shown (without Kafka, it comes after 5 s): if its `isComplete` is false, what came after `Last-Event-ID` is not known any more. `end` comes last, with a `reason`: `slow`, `session` or `stopping`. A comment comes every 15 s. Needs the right `read`. For a token with a scope, there is only what its scope holds.
         */
        get: operations["live"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/destinations/{destination}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Make a new secret of a destination, beside the old one
         * @description The answer has the new secret, and no later answer has it, unless you repeat the request with its Idempotency-Key. With Standard Webhooks, requests are signed with both secrets until the old one ends. `X-Signature` is made with the old one until then. Without Standard Webhooks, say when the old one ends. See docs/verifying-signatures.md. If there is a next secret already, the answer is 409. With `ed25519`, a new key of Ed25519 is made, which no answer has. Requests are signed with both keys until the old one ends. Needs the right `admin`. For a token with a scope, other destinations do not exist.
         */
        post: operations["rotate_secret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/destinations/{destination}/rotate/end": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End the old secret of a destination
         * @description From now on, requests are signed with the new secret only. Needs the right `admin`. For a token with a scope, other destinations do not exist.
         */
        post: operations["end_secret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/catalog/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the changes of the catalog, newest first
         * @description A page may have fewer changes than `limit`, although there are more: repeat the request with its `cursor` until that is null. With `object`, each change has the fields of this object that differ. Secrets and the values of headers are shown as `${kept:…}`, and the paths of URLs only to tokens with the right `admin`. Needs the right `read`. A token with a scope may not use it.
         */
        get: operations["list_catalog_changes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/catalog/history/{revision}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show a change of the catalog, with the fields that differ
         * @description A page has the first `limit` objects. Secrets and the values of headers are shown as `${kept:…}`, and the paths of URLs only to tokens with the right `admin`. Needs the right `read`. A token with a scope may not use it.
         */
        get: operations["show_catalog_change"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/catalog/history/{revision}/undo": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Undo a change of the catalog
         * @description Makes the opposite of the change, in one change. Secrets come back too. If one of its objects was changed again since, the answer is 409, and names the change that has to be undone first. An undo can be undone. Needs the right `admin`. A token with a scope may not use it.
         */
        post: operations["undo_catalog_change"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/catalog/apply": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Make many sources and destinations as they are given, in one change
         * @description As `sluice apply -f` does: objects that are not named stay as they are. So do `state`, secrets and keys of an object (`sharedSecret`, `signing.ed25519`, `writeKeys`, `serverKeys`) that the body does not have; null removes them. The body may have 8 MiB and 5,000 objects. All of it is made, or nothing. Ask with `dryRun` first. An object that somebody changes at the same moment refuses the change. Secrets, server keys and the values of headers are shown as `${kept:…}`. If you send such a text back, the value stays as it is. Needs the right `admin`. A token with a scope may not use it.
         */
        post: operations["apply_catalog"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Who did what, newest first
         * @description Of the last 90 days, the command line and the workers too. To get the next page, repeat the request with the `cursor` of this page. Needs the right `admin`. For a token with a scope, there is only what its scope holds.
         */
        get: operations["list_audit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description Where records come from. */
        Source: {
            /** @description The id, which records have in the header source-id. It is unique among the sources. It has 1 to 100 of the characters A-Z a-z 0-9 . _ - and begins with a letter or a digit. */
            id: string;
            /** @description The name for people. Absent: the id. */
            name?: string;
            /**
             * @description What the records of the source are. events: Segment messages. audiences: changes of audiences and computed traits.
             * @default events
             * @enum {unknown}
             */
            kind?: "events" | "audiences";
            /**
             * @description false: the records of the source go to no destination.
             * @default true
             */
            enabled?: boolean;
            /** @description The keys that clients of the gateway send: 1 to 200 visible ASCII characters each. No two sources may have the same key. */
            writeKeys?: string[];
            /** @description The secret keys of servers that send deletions and audience changes to the gateway. A key has 16 to 200 visible ASCII characters. Several sources may have the same key. */
            serverKeys?: string[];
            /**
             * @description The most messages per second that one gateway process accepts from the source. Absent: no limit.
             * @example 1000
             */
            maxPerSecond?: number;
            /**
             * @description Words of yours by which entries are chosen, such as the customer that one belongs to: at most 20. A name has 1 to 63 of the characters a-z 0-9 . _ - and begins with a letter. A value has 1 to 100 of the characters A-Z a-z 0-9 . _ @ : / + - and spaces, and begins with a letter or a digit. Labels change nothing about deliveries.
             * @example {
             *       "tenant": "acme"
             *     }
             */
            labels?: {
                [key: string]: string;
            };
        };
        /** @description Where messages are delivered. */
        Destination: {
            /** @description The id, which is unique among the destinations. It has 1 to 100 of the characters A-Z a-z 0-9 . _ - and begins with a letter or a digit. */
            id: string;
            /** @description The name for people. Absent: the id. */
            name?: string;
            /**
             * @description off: the destination gets no messages. paused: its messages wait in its queue, for up to 30 days, and are delivered in order when it is on again.
             * @default on
             * @enum {unknown}
             */
            state?: "on" | "off" | "paused";
            /**
             * @description The sources whose messages the destination gets. []: none yet.
             * @example [
             *       "shop"
             *     ]
             */
            sources: string[];
            /**
             * @description The messages that the destination gets from sources of the kind events. The filter also applies to notices. Deletes and the Identifies of audiences pass every filter. Absent: all messages.
             * @example {
             *       "types": [
             *         "track"
             *       ],
             *       "events": [
             *         "Order Completed"
             *       ]
             *     }
             */
            filter?: {
                /**
                 * @description The types of messages that the destination gets. Absent: all.
                 * @example [
                 *       "identify",
                 *       "track"
                 *     ]
                 */
                types?: ("identify" | "track" | "page" | "screen" | "group" | "alias")[];
                /**
                 * @description The names of the track events that the destination gets, spelled as in the messages. * stands for any characters, and \* for the character itself. Absent: all. Messages of other types are not affected.
                 * @example [
                 *       "Order Completed",
                 *       "Cart *"
                 *     ]
                 */
                events?: string[];
                /**
                 * @description false: the destination gets no messages from the past. These are messages whose timestamp is more than 24 hours before the time at which they came (receivedAt), such as those of an import.
                 * @default true
                 */
                historical?: boolean;
                /**
                 * @description The destination gets the messages of some users only, chosen by the hash of the userId (or of the anonymousId, if there is no userId). Absent: of all.
                 * @example {
                 *       "percent": 10
                 *     }
                 */
                sample?: {
                    /** @description The percentage of users. The same users are in the sample at all times and of all destinations, and a higher percentage adds users and takes none away. */
                    percent: number;
                };
                /**
                 * @description A condition in CEL that a message must meet, on its fields type, event, userId, properties, traits, context and others, or on the whole (message). A message that lacks a field of the condition does not meet it. At most 200 names, values and operators. docs/conditions.md has the language.
                 * @example event == "Order Completed" && properties.total > 100
                 */
                condition?: string;
            };
            /**
             * @description How requests are made of messages: at most 20 mappings, of which the first that is for a message is used. A message that none is for is not sent, except deletes and the Identifies of audiences, which are then sent as they are. Absent: messages are sent as they are. docs/mappings.md has examples.
             * @example [
             *       {
             *         "body": {
             *           "text": {
             *             "@template": "{{event}} by {{userId}}"
             *           }
             *         }
             *       }
             *     ]
             */
            mappings?: {
                /** @description The name for people. */
                name?: string;
                /**
                 * @description The messages that the mapping is for, as in filter.condition. Absent: all. A message gets the first mapping that is for it.
                 * @example type == "identify"
                 */
                condition?: string;
                /**
                 * @description The method of the requests.
                 * @default POST
                 * @enum {unknown}
                 */
                method?: "POST" | "PUT" | "PATCH";
                /**
                 * @description A path that is added to the path of the URL. {{properties.id}} stands for a value of the message, percent-encoded. A message that lacks one becomes a dead letter (mapping_failed).
                 * @example /users/{{userId}}
                 */
                path?: string;
                /**
                 * @description Headers whose values are made of the message, each by a directive or as text: at most 20. They take the place of headers of the URL with the same names.
                 * @example {
                 *       "X-Event": {
                 *         "@path": "$.event"
                 *       }
                 *     }
                 */
                headers?: {
                    [key: string]: unknown;
                };
                /**
                 * @description The body in the form of Segment's mapping-kit, with the directives @path, @template, @literal, @if, @case, @replace, @merge, @flatten, @json, @arrayPath and @excludeWhenNull. Absent: the message. A mapping has at most 5000 bytes as JSON.
                 * @example {
                 *       "text": {
                 *         "@template": "{{event}} by {{userId}}"
                 *       }
                 *     }
                 */
                body?: unknown;
                /**
                 * @description json: the body is JSON. form: it is application/x-www-form-urlencoded, and lists and objects in it are JSON.
                 * @default json
                 * @enum {unknown}
                 */
                format?: "json" | "form";
                /**
                 * @description The only fields of the message that the mapping sees: at most 100 paths, such as properties.total.
                 * @example [
                 *       "type",
                 *       "userId",
                 *       "properties.total"
                 *     ]
                 */
                allow?: string[];
                /**
                 * @description Fields of the message that the mapping does not see: at most 100 paths, such as context.ip.
                 * @example [
                 *       "type",
                 *       "userId",
                 *       "properties.total"
                 *     ]
                 */
                block?: string[];
            }[];
            /**
             * @description The secret with which each request is signed (X-Signature, the hex HMAC-SHA1 of the body). Absent: requests are not signed. ${CATALOG_X} stands for the value of a variable.
             * @example ${CATALOG_CRM_SECRET}
             */
            sharedSecret?: string;
            /**
             * @description The secret that will replace sharedSecret. Until it does, webhook-signature has two signatures, one made with each secret, and X-Signature is made with sharedSecret. Needs signing.standardWebhooks or sharedSecretEndsAt.
             * @example ${CATALOG_CRM_NEXT_SECRET}
             */
            nextSharedSecret?: string;
            /**
             * @description The time from which requests are signed with nextSharedSecret only (ISO 8601). A time without a zone is in UTC. A date alone means midnight.
             * @example 2026-09-30T12:00:00Z
             */
            sharedSecretEndsAt?: string;
            /**
             * @description How requests are signed in addition to X-Signature.
             * @example {
             *       "standardWebhooks": true
             *     }
             */
            signing?: {
                /**
                 * @description true: requests also have webhook-id, webhook-timestamp and webhook-signature (Standard Webhooks). If the secret begins with whsec_, the key is the rest of it, decoded from base64. Otherwise, the key is the UTF-8 bytes of the secret.
                 * @default false
                 */
                standardWebhooks?: boolean;
                /**
                 * @description Private keys of Ed25519. With each of them, webhook-signature has a signature of its own (v1a), in this order. Receivers verify with public keys, which anybody may know and the gateway serves. With several keys, receivers change from one to the next.
                 * @example [
                 *       "${CATALOG_CRM_SIGNING_KEY}"
                 *     ]
                 */
                ed25519?: string[];
            };
            /**
             * @description The order of the requests. all: Sluice posts to all hooks at once, and one success is enough. failover: Sluice posts to one hook after the other, in the order of the catalog, until one accepts the message.
             * @default all
             * @enum {unknown}
             */
            strategy?: "all" | "failover";
            /**
             * @description The most deliveries in flight at once in each process. Each of them may have a request to every hook. Sluice learns how many requests at once each URL takes, and makes no more: this is only the ceiling. If the field is given, a failing URL also has at most this many requests at once. If it is absent, a failing URL may have more, so that each message is tried.
             * @default 64
             */
            maxInFlight?: number;
            /**
             * @description The limit on the rate of attempts. Messages over the limit wait in the lane of the destination. Absent: no limit.
             * @example {
             *       "perSecond": 50
             *     }
             */
            rateLimit?: {
                /** @description The most attempts per second of all workers together. 0.5: one attempt in two seconds. */
                perSecond: number;
                /** @description The most attempts at once after an idle time. Absent: as many as perSecond allows in one second. */
                burst?: number;
            };
            /**
             * @description The time within which the head of an answer has to come: a duration from 100ms to 1m, such as 2s. Absent, or longer than the setting delivery.timeout: the setting applies.
             * @example 2s
             */
            timeout?: string;
            /**
             * @description The time for which all URLs must fail before Sluice pauses the destination: a duration from 1s to 2160h, such as 120h. off: Sluice never pauses it. Absent: the setting notices.autoPause applies.
             * @example 120h
             * @example off
             */
            autoPause?: string;
            /**
             * @description How messages are sent together, in one request that is signed as a whole. {}: with the defaults. Absent: each message has a request of its own. rateLimit and maxInFlight count requests, and so batches.
             * @example {
             *       "maxMessages": 100,
             *       "maxWait": "200ms"
             *     }
             */
            batch?: {
                /**
                 * @description The most messages of a request.
                 * @default 100
                 */
                maxMessages?: number;
                /**
                 * @description The most bytes of a request's body. A larger message is sent alone.
                 * @default 524288
                 */
                maxBytes?: number;
                /**
                 * @description The longest time that a message waits for others: a duration of up to 5s, such as 200ms. What has waited in the queue of the destination waits no longer.
                 * @default 200ms
                 * @example 50ms
                 * @example 2s
                 */
                maxWait?: string;
                /**
                 * @description How the messages are written. json: an array (application/json). ndjson: a line for each message (application/x-ndjson).
                 * @default json
                 * @enum {unknown}
                 */
                format?: "json" | "ndjson";
            };
            /**
             * @description Words of yours by which entries are chosen, such as the customer that one belongs to: at most 20. A name has 1 to 63 of the characters a-z 0-9 . _ - and begins with a letter. A value has 1 to 100 of the characters A-Z a-z 0-9 . _ @ : / + - and spaces, and begins with a letter or a digit. Labels change nothing about deliveries.
             * @example {
             *       "tenant": "acme"
             *     }
             */
            labels?: {
                [key: string]: string;
            };
            /**
             * @description The URLs to which messages are posted.
             * @example [
             *       {
             *         "url": "https://example.com/hook"
             *       }
             *     ]
             */
            hooks: {
                /**
                 * @description The full http or https URL, without user name, password and fragment. ${CATALOG_X} stands for the value of a variable.
                 * @example https://example.com/hook
                 */
                url: string;
                /** @description The name of the hook in logs and metrics, unique within the destination. Absent: the first 8 hex characters of the SHA-1 of the URL (of its text with ${CATALOG_X}, if it has a variable). It has 1 to 100 of the characters A-Z a-z 0-9 . _ - and begins with a letter or a digit. */
                id?: string;
                /**
                 * @description Headers that each request to this URL gets, with Latin-1 values: at most 50, with at most 8192 bytes together.
                 * @example {
                 *       "X-Team": "crm"
                 *     }
                 */
                headers?: {
                    [key: string]: string;
                };
                /**
                 * @description The login of each request, which becomes its header Authorization. Absent: requests have only the headers of the hook.
                 * @example {
                 *       "kind": "basic",
                 *       "username": "sluice",
                 *       "password": "${CATALOG_CRM_PASSWORD}"
                 *     }
                 */
                login?: {
                    /**
                     * @description basic: each request has the user name and the password (RFC 7617). oauth2: Sluice gets a token by client credentials (RFC 6749), which each request has as a Bearer token, until it ends or is refused.
                     * @enum {unknown}
                     */
                    kind: "basic" | "oauth2";
                    /**
                     * @description The user name of basic, without a colon. An API key is often the user name of a login without a password. ${CATALOG_X} stands for the value of a variable.
                     * @example sluice
                     */
                    username?: string;
                    /**
                     * @description The password of basic. Absent: it is empty. ${CATALOG_X} stands for the value of a variable.
                     * @example ${CATALOG_CRM_PASSWORD}
                     */
                    password?: string;
                    /**
                     * @description The URL of the token endpoint of oauth2. The rules for URLs of hooks apply, also those for addresses. It is shown, so it must have no secret in it.
                     * @example https://login.example.com/oauth2/token
                     */
                    tokenUrl?: string;
                    /**
                     * @description The id of the client of oauth2.
                     * @example sluice
                     */
                    clientId?: string;
                    /**
                     * @description The secret of the client of oauth2. ${CATALOG_X} stands for the value of a variable.
                     * @example ${CATALOG_CRM_CLIENT_SECRET}
                     */
                    clientSecret?: string;
                    /**
                     * @description What the token is asked for, as the token endpoint names it. Absent: its default.
                     * @example events.write
                     */
                    scope?: string;
                    /**
                     * @description For whom the token is, if the token endpoint asks for it.
                     * @example https://crm.example.com
                     */
                    audience?: string;
                    /**
                     * @description How the client of oauth2 names itself to the token endpoint. basic: in the header Authorization. post: in the form.
                     * @default basic
                     * @enum {unknown}
                     */
                    clientAuth?: "basic" | "post";
                };
                /**
                 * @description The client certificate (mutual TLS), and the authorities that are trusted. The URL of the hook must begin with https. A change of a variable in a file takes effect without a restart.
                 * @example {
                 *       "certificate": "${CATALOG_CRM_CERTIFICATE}",
                 *       "key": "${CATALOG_CRM_KEY}"
                 *     }
                 */
                tls?: {
                    /**
                     * @description The client certificate in PEM, and after it its intermediate certificates. Needs key. ${CATALOG_X} stands for the value of a variable.
                     * @example ${CATALOG_CRM_CERTIFICATE}
                     */
                    certificate?: string;
                    /**
                     * @description The private key of the client certificate in PEM, not encrypted. ${CATALOG_X} stands for the value of a variable.
                     * @example ${CATALOG_CRM_KEY}
                     */
                    key?: string;
                    /**
                     * @description The certificates of the authorities, in PEM, that may sign the server's certificate. Only these are trusted then. Absent: the public authorities, and those of NODE_EXTRA_CA_CERTS. ${CATALOG_X} stands for the value of a variable.
                     * @example ${CATALOG_CRM_CA}
                     */
                    ca?: string;
                };
            }[];
        };
        /** @description `all`: the whole installation. Otherwise only destinations that have the label, and that are in the list, if these are given. A label also holds the sources that have it. */
        Scope: "all" | {
            label?: string;
            destinations?: string[];
        };
        ReplaySelection: {
            /** @enum {unknown} */
            of: "dead-letters" | "events";
            /** @description A replay of dead letters takes only those of this destination. A replay of events needs this field: it names the destination that gets them. */
            destination?: string;
            source?: string;
            /** @description A replay of dead letters takes only those with this reason. */
            reason?: string;
            messageId?: string;
            /** @description The beginning of the time range, which is included. What counts is the time at which the event was taken, or at which the delivery became a dead letter. */
            from?: string;
            /** @description The end of the time range, which is excluded. */
            to?: string;
        };
        ReplayOrder: {
            selection: components["schemas"]["ReplaySelection"];
            /** @description Records a second, at most; default 1,000. */
            perSecond?: number;
            /** @description True: also what other replays have sent. Default false: this is left out. */
            again?: boolean;
            /** @description True: the selection may have no condition, and then takes everything that Kafka still has. Without it, a selection needs a condition. A preview needs no `all`. */
            all?: boolean;
        };
        ReplayTally: {
            records: number;
            bytes: number;
            /** @description The records that are not sent again, by reason. */
            leftOut: {
                [key: string]: number;
            };
        };
        ReplayPreview: {
            selection: components["schemas"]["ReplaySelection"];
            counted: components["schemas"]["ReplayTally"];
            /** @description What would be sent, by destination and reason, largest first; at most 1,001. Those without both are all others. */
            groups: {
                /** @description null: they go back to the topic that they came from. */
                destination: string | null;
                /** @description Of the dead letters; null for events. */
                reason: string | null;
                records: number;
                bytes: number;
            }[];
            /** @description Whether what other replays have sent was counted, too. */
            again: boolean;
            /** @description It is false if the time was too short to look at all records. */
            isComplete: boolean;
        };
        Replay: {
            id: string;
            /**
             * @description `delivering`: all records are handed to the workers, and some still wait for their turn. `done`: none of them waits. What has failed is tried again like any other message.
             * @enum {unknown}
             */
            state: "waiting" | "running" | "delivering" | "stopped" | "done";
            /** @description Why the replay stopped, if nobody asked for that. */
            detail: string;
            selection: components["schemas"]["ReplaySelection"];
            perSecond: number;
            /** @description Whether it also sends what other replays have sent. */
            again: boolean;
            createdBy: string;
            /** Format: date-time */
            createdAt: string;
            /** @description It is null if the time was too short to count all records. */
            counted: components["schemas"]["ReplayTally"] | null;
            sent: components["schemas"]["ReplayTally"];
            /** @description The share of the topic that was looked at. */
            read: {
                offsets: number;
                of: number;
            };
            /** @description How many of the sent records still wait for their turn, at most, because those of other replays to the same destinations are counted too. It is null if the number is not known. */
            waiting?: number | null;
            /** @description The time until all records are handed to the workers. */
            secondsLeft?: number | null;
            /** @description The worker that runs the replay, or ran it last. */
            owner?: string | null;
            /** @description How often a worker has begun the replay, or continued it. */
            owners?: number;
            notedAt?: string | null;
        };
        LogRecord: {
            /** Format: date-time */
            at: string;
            /** @enum {unknown} */
            kind: "attempted" | "parked" | "delivered" | "dead" | "superseded" | "suppressed" | "omitted" | "filtered";
            /** @description Whether this is the end of the delivery. */
            isEnd: boolean;
            /** @description The number of deliveries that the record stands for. Not every success has a record of its own. */
            weight: number;
            destination: string | null;
            hook: string | null;
            source: string | null;
            messageId: string | null;
            messageType: string | null;
            /** @description The record of Kafka that has the message, as long as Kafka keeps it. */
            origin: {
                topic: string;
                partition: number;
                offset: number;
            };
            /** @description The number of the try. It is 0 before the first try. */
            attempt: number;
            verdict: ("delivered" | "retry" | "final") | null;
            outcome: ("answer" | "timeout" | "connection" | "dns" | "proxy" | "certificate" | "address" | "request" | "files" | "login") | null;
            status: number | null;
            durationMs: number | null;
            reason: string | null;
            /** @description An error code, such as ECONNREFUSED. */
            error: string | null;
            /** @description The time when the parked delivery is due. It is null if the delivery waits for its turn in the queue of its destination. */
            dueAt: string | null;
            /** Format: date-time */
            firstSeenAt: string;
            /** @description A keyed hash of the user. It is null if no key is set. */
            user: string | null;
            replay: string | null;
            /** @description The beginning of the answer to a failed request. The log has it only if `attempts.answers` is on. It is null if the token sees no content, and the link no answers. */
            answer: string | null;
        };
        LogDelivery: {
            /** @description It is null if the message came to no destination. */
            destination: string | null;
            /** @enum {unknown} */
            state: "delivered" | "dead" | "superseded" | "suppressed" | "omitted" | "filtered" | "waiting" | "under_way";
            /** @description The time when the delivery is tried again. It is null if the delivery does not wait. */
            dueAt: string | null;
            /** @description The records of the delivery. The oldest one is the first. */
            records: components["schemas"]["LogRecord"][];
        };
        LogMinute: {
            /**
             * Format: date-time
             * @description The time when the minute begins.
             */
            minute: string;
            succeeded: number;
            failed: number;
            parked: number;
            delivered: number;
            dead: number;
            superseded: number;
            suppressed: number;
            omitted: number;
            filtered: number;
            /** @description How long attempts took, within 6 % (in ClickHouse in steps of 0.1 ms). It is null if there was no attempt. */
            durationMs: {
                p50: number;
                p95: number;
                p99: number;
            } | null;
        };
        LogGroup: {
            key: string;
            succeeded: number[];
            failed: number[];
            dead: number[];
        };
        DeadLetterGroup: {
            /** @description It is null if the message came to no destination. */
            destination: string | null;
            /** @description Why the deliveries were given up. */
            reason: string;
            count: number;
            /**
             * Format: date-time
             * @description The beginning of the step that has the first of them.
             */
            firstAt: string;
            /**
             * Format: date-time
             * @description The end of the step that has the last of them, or of the time range.
             */
            lastAt: string;
        };
        MessageEvent: {
            origin: {
                topic: string;
                partition: number;
                offset: number;
            };
            /** @description When Kafka got the record. */
            at: string | null;
            source: string | null;
            /** @description The body as it is sent, byte for byte. If the message was refused, it is as its producer wrote it. */
            body: string | null;
            /** @description Why the body is not shown, or why the message was refused. It is null if there is nothing to say. */
            note: string | null;
        };
        MessageRequest: {
            destination: string;
            hook: string;
            method: string;
            /** @description The scheme, host and port of the URL. */
            origin: string;
            /** @description What a mapping adds to the path of the URL. */
            path: string;
            /** @description Whether the message is sent in a batch. Then its body is one entry of the body of the request, and signatures are of the whole. */
            isBatched: boolean;
            headers: {
                name: string;
                /** @description It is null for signatures, for times, for the number of the try, for the id of a batch, and for headers of the catalog, which may be secrets. */
                value: string | null;
            }[];
            /** @description What the mapping of the destination makes of the message, byte for byte. It is null if the message is sent as it is. */
            body: string | null;
        };
        SourceEvent: {
            origin: {
                topic: string;
                partition: number;
                offset: number;
            };
            /**
             * Format: date-time
             * @description When Kafka got the record.
             */
            at: string;
            /** @description The value of the record, as its producer wrote it. */
            body: string | null;
            /** @description Why the body is not shown, or why the message was refused. It is null if there is nothing to say. */
            note: string | null;
        };
        EventSearch: {
            /** @description A field and its value, such as `properties.orderId=4711`. A name with a dot is in brackets: `properties["order.id"]=4711`. All of them must be met. A list meets one if one of its items does. */
            conditions?: string[];
            /** @description A text that the event has somewhere, as JSON writes it. Conditions or a text are needed. */
            text?: string;
            source?: string;
            /** @description The beginning of the time in which Kafka got the events, in ISO 8601. The default is an hour ago. */
            from?: string;
            /** @description The end of this time. The default is now. */
            to?: string;
            /** @description The most events of an answer; default 50. */
            limit?: number;
            cursor?: string;
        };
        FoundEvent: {
            origin: {
                topic: string;
                partition: number;
                offset: number;
            };
            /**
             * Format: date-time
             * @description When Kafka got the record.
             */
            at: string;
            source: string | null;
            /** @description It is empty if Sluice refuses the event, which has none. */
            messageId: string;
            type: string;
            /** @description The value of the record, as its producer wrote it. */
            body: string;
        };
        PreviewedMapping: {
            /** @description Its place in the list of mappings, from 0. */
            place: number;
            /** @description Its name in the catalog. */
            name: string | null;
        };
        PreviewedHeader: {
            name: string;
            value: string;
        };
        PreviewedRequest: {
            method: string;
            /** @description What is added to the path of the URL. */
            path: string;
            /** @description The headers that the message decides. */
            headers: components["schemas"]["PreviewedHeader"][];
            /** @description The body, byte for byte. */
            body: string;
            /** @description It is true if the message would have a request of its own also if the destination had a `batch`, because its mapping makes more than a body of JSON. */
            isAlone: boolean;
        };
        Previewed: {
            /** @description It is null if the message was refused. */
            messageId: string | null;
            /** @description The body that is sent without a mapping. It is null if the message was refused. */
            message: string | null;
            /**
             * @description `passes`: the destination gets the message. `excluded`: it does not. `missing_field`: it does not, because the message lacks a field of the condition, or it has another type. `not_sampled`: the user is not in the sample. `failed`: the message becomes a dead letter, because its condition can not be evaluated. `mapping_failed`: it becomes a dead letter, because the mapping makes no request of it. `refused`: no destination gets the message, because it has a fault.
             * @enum {string}
             */
            result: "passes" | "excluded" | "missing_field" | "not_sampled" | "failed" | "mapping_failed" | "refused";
            /** @description Why, without anything of the message. It is null if there is nothing to say. */
            detail: string | null;
            /** @description The mapping that is for the message, or whose condition can not be evaluated. It is null if none is, or if the filter keeps the message away. */
            mapping: components["schemas"]["PreviewedMapping"] | null;
            /** @description The request that the destination would get. It is null if it would get none. */
            request: components["schemas"]["PreviewedRequest"] | null;
        };
        Worker: {
            /** @description The host and the process id. */
            name: string;
            /** @description It is null if an earlier version runs. */
            version: string | null;
            /** Format: date-time */
            startedAt: string | null;
            /** @description How many units the worker owns. */
            units: number;
            /**
             * Format: date-time
             * @description When it last told something.
             */
            toldAt: string;
            /** @description What keeps it from the present catalog. In a topic: why it doesn't follow it, which objects it can't use, or which were overwritten. In a file: the faults of the last edit, or of some files of a folder. It is null if nothing does. */
            catalogTrouble: string | null;
            /**
             * Format: date-time
             * @description When the copy of the catalog was written that it uses instead. It is null if it uses none.
             */
            catalogCopyAt: string | null;
        };
        /**
         * @description `failing`: a URL of it fails. `gone`: a URL has answered 410. `auto_paused`: Sluice has paused it. `paced`: messages wait for their turn, or its endpoint takes less than it could get. `unknown`: not all workers tell how it is.
         * @enum {string}
         */
        Condition: "failing" | "gone" | "auto_paused" | "paced" | "paused" | "unknown" | "healthy" | "off";
        Attention: {
            destination: string;
            name: string;
            condition: components["schemas"]["Condition"];
            /** Format: date-time */
            since: string | null;
            why: string;
            /** @description The command to run next. */
            next: string;
        };
        Status: {
            /**
             * Format: date-time
             * @description When this was read from Kafka. It is a few seconds ago, or longer while Kafka does not answer.
             */
            asOf: string;
            workers: components["schemas"]["Worker"][];
            /** @description How many units have an owner that tells, of how many. It is null if no worker tells. */
            units: {
                told: number;
                of: number;
            } | null;
            /** @description The records that are not settled, without retries and without what waits in queues. It is null if not all workers tell. */
            lag: {
                records: number;
                /** Format: date-time */
                oldestAt: string | null;
            } | null;
            /** @description How many messages wait for their next try. */
            retrying: number | null;
            /** @description How many messages wait for their turn. */
            waiting: number | null;
            /** @description How many destinations are in each condition. */
            destinations: {
                total: number;
                failing: number;
                gone: number;
                auto_paused: number;
                paced: number;
                paused: number;
                unknown: number;
                healthy: number;
                off: number;
            };
            /** @description The ten destinations that need attention most, the worst first. */
            attention: components["schemas"]["Attention"][];
            /** @description How many destinations need attention. */
            needAttention: number;
            /** @description How many more destinations fail, of which workers do not tell because they are too many. */
            untold: number;
            /** @description What is not known, for people. */
            unknown: string[];
        };
        HookState: {
            id: string;
            /** @description The scheme, host and port of the URL. */
            origin: string;
            /**
             * @description How requests log in, beside their headers.
             * @enum {string|null}
             */
            login: "basic" | "oauth2" | null;
            /** @description The scheme, host and port of the token endpoint of OAuth 2. */
            tokenOrigin: string | null;
            /**
             * Format: date-time
             * @description When its client certificate ends. It is null if it has none.
             */
            certificateEndsAt: string | null;
            /** @description Whether only authorities of its own are trusted (`tls.ca`). */
            hasOwnAuthorities: boolean;
            /** @description It is true if the URL has answered 410 (Gone). Such a URL gets no requests until it is edited or the destination is resumed. */
            isGone: boolean;
            /** @description How it fails. It is null if no worker says that it does. */
            failing: {
                /**
                 * Format: date-time
                 * @description The time since which it fails.
                 */
                since: string;
                isBreakerOpen: boolean;
                /** @description The outcomes of the requests of the last five to ten minutes, the most frequent first. */
                answers: {
                    outcome: string;
                    count: number;
                }[];
                /** Format: date-time */
                lastFailureAt: string;
                /**
                 * Format: date-time
                 * @description It is null if there was none since the worker has started.
                 */
                lastSuccessAt: string | null;
                /** @description Why no token to log in with can be had, so that messages wait. It is null if the last failure was another. */
                loginProblem: string | null;
            } | null;
        };
        /** @description What the workers know of it. */
        Health: {
            condition: components["schemas"]["Condition"];
            /**
             * Format: date-time
             * @description Since when it is so. It is null if this is not known.
             */
            since: string | null;
            /** @description The reason, for people. It is empty if it is healthy. */
            why: string;
            /**
             * Format: date-time
             * @description When a message that has failed is tried next. It is null if this is not known.
             */
            nextTryAt: string | null;
            /**
             * Format: date-time
             * @description From this time on, requests are signed only with `nextSharedSecret`.
             */
            secretEndsAt: string | null;
            /**
             * Format: date-time
             * @description The other figures were true at this time or later. It is null if not all workers tell what waits.
             */
            asOf: string | null;
            /** @description How many messages wait for their turn. It is null if the number is not known. */
            waiting: number | null;
            /** @description How many messages have failed and wait for their next try, at least. It is up to 15 s old. It is null if the number is not known. */
            retrying: number | null;
            /** @description How many these are at most. It is more than `retrying` for some time after workers have started, while they count what earlier ones have left on the retry topics. It is null if this is not known. */
            retryingAtMost: number | null;
            /**
             * Format: date-time
             * @description The time since which the oldest of them waits. It is null if none waits, or if the time is not known.
             */
            oldestWaitingSince: string | null;
            /** @description The time until all of them are sent, at the present rate. It is null if the destination is not on, or if the time is not known. */
            drainedInSeconds: number | null;
            /** @description The most requests that all workers together may have in flight at present. It is null if nothing waits, or if the number is not known. */
            inFlightLimit: number | null;
            /** @description The most requests a second at present. It is null if there is no limit, or if the limit is not known. */
            perSecondLimit: number | null;
            /** @description Whether the workers have learned to send less than they could, because the endpoint takes less. */
            isLimitLowered: boolean | null;
        };
        ListedDestination: {
            id: string;
            name: string;
            /**
             * @description `auto_paused`: it is `on` in the catalog, but Sluice has paused it.
             * @enum {string}
             */
            state: "on" | "off" | "paused" | "auto_paused";
            labels: {
                [key: string]: string;
            };
            sources: string[];
            filter: {
                types?: string[];
                events?: string[];
                /** @description `false`: messages from the past are left out. */
                historical?: boolean;
            } | null;
            /** @description Whether requests are signed, by a shared secret or by a key. */
            isSigned: boolean;
            /** @enum {string} */
            strategy: "all" | "failover";
            maxInFlight: number;
            rateLimit: {
                perSecond?: number;
                burst?: number;
            } | null;
            /** @description How messages are sent together. `null`: each has a request of its own. */
            batch: {
                maxMessages?: number;
                maxBytes?: number;
                maxWait?: string;
                /** @enum {string} */
                format?: "json" | "ndjson";
            } | null;
            hooks: components["schemas"]["HookState"][];
            health: components["schemas"]["Health"];
        };
        SigningKey: {
            kty: string;
            crv: string;
            /** @description The public key in base64url. */
            x: string;
            /** @description The thumbprint of the key (RFC 7638). */
            kid: string;
            use: string;
            alg: string;
            /** @description The public key in the format of Standard Webhooks. */
            whpk: string;
        };
        LoginTrial: {
            /** @enum {string} */
            kind: "basic" | "oauth2";
            /** @description The scheme, host and port of the token endpoint of OAuth 2. */
            tokenOrigin: string | null;
            /** @description Why no token came, so that nothing was sent. It is null if one came, or if none is needed. */
            problem: string | null;
            /** @description How long the request for the token took. It is null if none is needed. */
            durationMs: number | null;
        };
        HookTrial: {
            /** @description The id of the URL. */
            hook: string;
            /** @description The scheme, host and port of the URL. */
            origin: string;
            /** @description How the request has logged in. It is null if it has only its headers. */
            login: components["schemas"]["LoginTrial"] | null;
            /**
             * Format: date-time
             * @description When the client certificate of the URL ends. It is null if it has none.
             */
            certificateEndsAt: string | null;
            /**
             * @description What this outcome would mean in a delivery. `delivered`: the URL accepted the message. `retry`: Sluice would try the URL again. `final`: it would not.
             * @enum {string}
             */
            verdict: "delivered" | "retry" | "final";
            /** @description The outcome of the request, by its name in the delivery log. */
            outcome: string;
            /** @description The status of the answer. It is null if there was no answer. */
            status: number | null;
            /** @description The time from the start of the request to its outcome. It includes the time to connect. */
            durationMs: number;
            /** @description The first 2 KB of the body of an answer that is not a 2xx and is not compressed. Secrets of the destination are masked where they appear unchanged. */
            answer: string | null;
            /** @description What can be done. It is null if the URL accepts the message. */
            advice: string | null;
        };
        PausedDestination: {
            destination: string;
            /**
             * Format: date-time
             * @description The time since which all of its URLs have failed.
             */
            since: string;
            /** Format: date-time */
            pausedAt: string;
            /** @description The outcome of its last request. */
            lastOutcome: string;
            /**
             * @description `failing`: its URLs have failed for too long. `gone`: they have answered 410.
             * @enum {string}
             */
            cause: "failing" | "gone";
        };
        BulkOrder: {
            selection: {
                /** @description Such as `tenant=acme`. */
                label?: string;
                /** @description A state or a condition, as in the list of destinations. */
                state?: string;
                /** @description A text that the id, the name or the host has, in upper or lower case. */
                search?: string;
                source?: string;
                destinations?: string[];
            };
            /** @enum {unknown} */
            do: "pause" | "resume" | "retry-now" | "label";
            /** @description With `label`: the labels that are set, and those that are removed (null). */
            labels?: {
                [key: string]: string | null;
            };
            /** @description If it is true, nothing is changed. */
            dryRun?: boolean;
        };
        BulkDone: {
            do: string;
            /** @description It is true if nothing was changed. */
            isPreview: boolean;
            /** @description How many destinations are selected. */
            selected: number;
            /** @description Those to which it is done. */
            destinations: string[];
            /** @description Those to which it is not done. */
            skipped: {
                destination: string;
                /** @description The reason, for people. */
                why: string;
            }[];
            /** @description Those of `selection.destinations` that do not exist. */
            unknown: string[];
            /** @description The number of the change of the catalog, by which it can be undone. It is null if there was none. */
            revision: number | null;
        };
        AudienceCount: {
            /** @description The key of the audience or of the computed trait. */
            key: string;
            /** @description How many users are in the audience, or have a value of the trait. */
            values: number;
        };
        AudienceDestination: {
            destination: string;
            name: string;
            /**
             * @description `first_sync`: it was connected later, and gets the present values. `waiting`: its first sync waits until the destination and the source are on. `needs_backfill`: it lacks values: `sluice audience backfill`. `unknown`: not all workers tell.
             * @enum {unknown}
             */
            state: "complete" | "first_sync" | "waiting" | "needs_backfill" | "unknown";
            /** @description How many values are still to be queued for it. While they are counted, it grows. */
            left: number;
        };
        AudienceSpace: {
            /** @description The id of the source. */
            id: string;
            name: string;
            isOn: boolean;
            /** @description How many values there are. It is null until workers have counted all units. */
            values: number | null;
            /**
             * Format: date-time
             * @description When the oldest part of the counts was counted. Workers count slowly, again and again.
             */
            countedAt: string | null;
            /** @description Those with most values come first. Counts are those of the units that were counted. */
            audiences: components["schemas"]["AudienceCount"][];
            /** @description How many values are in others, which are too many to be told. */
            otherValues: number;
            /** @description At most 200 of its destinations. Those that lack something come first. */
            destinations: components["schemas"]["AudienceDestination"][];
            /** @description How many destinations are connected to it. */
            connected: number;
        };
        ObjectChanged: {
            /** @enum {string} */
            what: "created" | "changed" | "removed" | "unchanged";
            /** @description The version of the object. It is also in the header `ETag`, in quotes. */
            version: number | null;
            /** @description The number of the last change of the catalog. */
            revision: number;
            /** @description The fields that the object had and has no more, such as `hooks[0].login`, with the positions before. Empty if the whole object was removed. */
            removed: string[];
        };
        ListedSource: {
            id: string;
            name: string;
            /** @enum {string} */
            kind: "events" | "audiences";
            enabled: boolean;
            /** @description How many destinations are connected to it. */
            destinations: number;
        };
        ListedToken: {
            name: string;
            /** @enum {unknown} */
            right: "read" | "operate" | "admin";
            /** @description Whether the token sees what messages contain, and what endpoints have answered. */
            content: boolean;
            scope: components["schemas"]["Scope"];
            /**
             * Format: date-time
             * @description When the token ends. It is null if it has no end.
             */
            expiresAt: string | null;
            /** @description The token, or the user of the command line, that made it. It is null for tokens of the file. */
            createdBy: string | null;
            /** Format: date-time */
            createdAt: string | null;
            hasEnded: boolean;
            /**
             * @description `file`: it is in the file of `admin.tokensFile`, which is edited by hand.
             * @enum {unknown}
             */
            origin: "file" | "topic";
            /**
             * Format: date-time
             * @description When the process that answers saw the token last. It is null if this process has not seen it since `usesKnownSince`. Other processes may have.
             */
            lastUsedAt: string | null;
        };
        HeldSession: {
            id: string;
            /**
             * @description Who has signed in: a person at the OpenID provider, or the holder of a token or of a link.
             * @enum {unknown}
             */
            kind: "person" | "token" | "link";
            /** @description The id of this person, token or link. `DELETE /v1/sessions/of/{holder}` ends all of its sessions. */
            holder: string;
            /** @description The name, as the audit trail has it. */
            name: string;
            /** @description The rights of its token, or those of its link. */
            rights: ("read" | "operate" | "admin" | "see" | "answers" | "replay" | "test" | "edit_url" | "rotate")[];
            /** @description Whether it sees what messages contain, and what endpoints have answered. With the right `answers`, a link sees the answers without it. */
            content: boolean;
            scope: components["schemas"]["Scope"];
            /**
             * Format: date-time
             * @description When somebody has signed in.
             */
            since: string;
            /**
             * Format: date-time
             * @description It was used at this time, or later by up to a quarter of `admin.sessionIdleTimeout`, because not each use is written down.
             */
            lastUsedAt: string;
            /**
             * Format: date-time
             * @description When it ends at the latest.
             */
            endsAt: string;
            /** @description Whether it is the session of the request. */
            isOwn: boolean;
        };
        SessionsEnded: {
            /** @description How many sessions have ended. */
            ended: number;
        };
        Link: {
            id: string;
            /** @description Who it is for: the audit trail has it. */
            name: string;
            /** @description What it shows: the destinations and sources with this label. */
            label: string;
            rights: ("see" | "answers" | "replay" | "test" | "edit_url" | "rotate")[];
            /** Format: date-time */
            expiresAt: string;
            createdBy: string;
            /** Format: date-time */
            createdAt: string;
        };
        FieldChange: {
            /** @description The path of the field. */
            field: string;
            /** @description null: it was not there. */
            before: unknown;
            /** @description null: it is not there. */
            after: unknown;
        };
        CatalogChange: {
            /** @description The number of the change. */
            revision: number;
            /** Format: date-time */
            at: string;
            /** @description The name of a token, or a user of the command line. */
            by: string;
            /** @description The revision that this change has undone. */
            undoes: number | null;
            /** @description How many objects it has changed. */
            count: number;
            /** @description false: parts of it are too old, and were deleted. */
            isWhole: boolean;
            /** @description The first 100 of them. */
            objects: {
                /** @description The kind and the id of the object. */
                object: string;
                /** @enum {string} */
                what: "created" | "changed" | "removed";
            }[];
            /** @description Those of the object that was asked for. */
            fields: components["schemas"]["FieldChange"][] | null;
        };
        AuditEntry: {
            /** Format: date-time */
            at: string;
            /** Format: date-time */
            lastAt: string;
            /** @description How often it was done from `at` to `lastAt`: the same by the same on the same within an hour is one entry. */
            count: number;
            /** @description The name of a token, a user of the command line, or a worker. */
            by: string;
            /** @enum {unknown} */
            action: "created" | "begun" | "taken_over" | "stopped" | "resumed" | "done" | "destination_resumed" | "destination_retried" | "destination_dropped" | "catalog_changed" | "destination_tested" | "user_searched" | "content_read" | "tokens_changed" | "signed_in" | "signed_out" | "sessions_ended" | "links_changed";
            replay: string | null;
            /** @description The destination that was resumed or tested, or whose messages were tried at once or given up. */
            destination: string | null;
            records: number | null;
            detail: string;
        };
        Problem: {
            /**
             * Format: uri-reference
             * @enum {string}
             */
            type: "/problems/bad-request" | "/problems/no-token" | "/problems/not-allowed" | "/problems/other-site" | "/problems/not-found" | "/problems/too-slow" | "/problems/conflict" | "/problems/outdated" | "/problems/too-large" | "/problems/unknown-type" | "/problems/answer-too-large" | "/problems/faulty" | "/problems/other-request" | "/problems/no-condition" | "/problems/busy" | "/problems/head-too-large" | "/problems/internal" | "/problems/unavailable" | "/problems/log-unavailable";
            title: string;
            status: number;
            /** @description What is wrong, and what to do. */
            detail: string;
        };
    };
    responses: {
        /** @description The request can not be read */
        BadRequest: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description A token is needed */
        NoToken: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The token has too few rights; or: The request comes from another site */
        NotAllowedOrOtherSite: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The request came too slowly */
        TooSlow: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Too much at once */
        Busy: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The URL or the headers are too large */
        HeadTooLarge: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description A fault of Sluice */
        Internal: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Kafka does not answer */
        Unavailable: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The body is too large */
        TooLarge: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The body is no JSON */
        UnknownType: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The present state does not allow this */
        Conflict: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The key belongs to another request */
        OtherRequest: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Not found */
        NotFound: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Kafka does not answer; or: The delivery log can not be queried */
        UnavailableOrLogUnavailable: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The answer is too large */
        AnswerTooLarge: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The answer is too large; or: The change has faults */
        AnswerTooLargeOrFaulty: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Changed since you have seen it */
        Outdated: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The change has faults; or: The key belongs to another request */
        FaultyOrOtherRequest: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description A condition is needed */
        NoCondition: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The change has faults */
        Faulty: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type Source = components['schemas']['Source'];
export type Destination = components['schemas']['Destination'];
export type Scope = components['schemas']['Scope'];
export type ReplaySelection = components['schemas']['ReplaySelection'];
export type ReplayOrder = components['schemas']['ReplayOrder'];
export type ReplayTally = components['schemas']['ReplayTally'];
export type ReplayPreview = components['schemas']['ReplayPreview'];
export type Replay = components['schemas']['Replay'];
export type LogRecord = components['schemas']['LogRecord'];
export type LogDelivery = components['schemas']['LogDelivery'];
export type LogMinute = components['schemas']['LogMinute'];
export type LogGroup = components['schemas']['LogGroup'];
export type DeadLetterGroup = components['schemas']['DeadLetterGroup'];
export type MessageEvent = components['schemas']['MessageEvent'];
export type MessageRequest = components['schemas']['MessageRequest'];
export type SourceEvent = components['schemas']['SourceEvent'];
export type EventSearch = components['schemas']['EventSearch'];
export type FoundEvent = components['schemas']['FoundEvent'];
export type PreviewedMapping = components['schemas']['PreviewedMapping'];
export type PreviewedHeader = components['schemas']['PreviewedHeader'];
export type PreviewedRequest = components['schemas']['PreviewedRequest'];
export type Previewed = components['schemas']['Previewed'];
export type Worker = components['schemas']['Worker'];
export type Condition = components['schemas']['Condition'];
export type Attention = components['schemas']['Attention'];
export type Status = components['schemas']['Status'];
export type HookState = components['schemas']['HookState'];
export type Health = components['schemas']['Health'];
export type ListedDestination = components['schemas']['ListedDestination'];
export type SigningKey = components['schemas']['SigningKey'];
export type LoginTrial = components['schemas']['LoginTrial'];
export type HookTrial = components['schemas']['HookTrial'];
export type PausedDestination = components['schemas']['PausedDestination'];
export type BulkOrder = components['schemas']['BulkOrder'];
export type BulkDone = components['schemas']['BulkDone'];
export type AudienceCount = components['schemas']['AudienceCount'];
export type AudienceDestination = components['schemas']['AudienceDestination'];
export type AudienceSpace = components['schemas']['AudienceSpace'];
export type ObjectChanged = components['schemas']['ObjectChanged'];
export type ListedSource = components['schemas']['ListedSource'];
export type ListedToken = components['schemas']['ListedToken'];
export type HeldSession = components['schemas']['HeldSession'];
export type SessionsEnded = components['schemas']['SessionsEnded'];
export type Link = components['schemas']['Link'];
export type FieldChange = components['schemas']['FieldChange'];
export type CatalogChange = components['schemas']['CatalogChange'];
export type AuditEntry = components['schemas']['AuditEntry'];
export type Problem = components['schemas']['Problem'];
export type ResponseBadRequest = components['responses']['BadRequest'];
export type ResponseNoToken = components['responses']['NoToken'];
export type ResponseNotAllowedOrOtherSite = components['responses']['NotAllowedOrOtherSite'];
export type ResponseTooSlow = components['responses']['TooSlow'];
export type ResponseBusy = components['responses']['Busy'];
export type ResponseHeadTooLarge = components['responses']['HeadTooLarge'];
export type ResponseInternal = components['responses']['Internal'];
export type ResponseUnavailable = components['responses']['Unavailable'];
export type ResponseTooLarge = components['responses']['TooLarge'];
export type ResponseUnknownType = components['responses']['UnknownType'];
export type ResponseConflict = components['responses']['Conflict'];
export type ResponseOtherRequest = components['responses']['OtherRequest'];
export type ResponseNotFound = components['responses']['NotFound'];
export type ResponseUnavailableOrLogUnavailable = components['responses']['UnavailableOrLogUnavailable'];
export type ResponseAnswerTooLarge = components['responses']['AnswerTooLarge'];
export type ResponseAnswerTooLargeOrFaulty = components['responses']['AnswerTooLargeOrFaulty'];
export type ResponseOutdated = components['responses']['Outdated'];
export type ResponseFaultyOrOtherRequest = components['responses']['FaultyOrOtherRequest'];
export type ResponseNoCondition = components['responses']['NoCondition'];
export type ResponseFaulty = components['responses']['Faulty'];
export type $defs = Record<string, never>;
export interface operations {
    health: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "ok",
                     *       "version": "0.1.0",
                     *       "commit": "2fb1096",
                     *       "token": {
                     *         "name": "ann",
                     *         "right": "operate",
                     *         "content": true,
                     *         "scope": "all",
                     *         "expiresAt": null
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        status: "ok";
                        version: string;
                        commit: string;
                        token: {
                            name: string;
                            /** @enum {unknown} */
                            right: "read" | "operate" | "admin";
                            /** @description Whether the token sees what messages contain, and what endpoints have answered. */
                            content: boolean;
                            scope: components["schemas"]["Scope"];
                            /** Format: date-time */
                            expiresAt: string | null;
                        };
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            408: components["responses"]["TooSlow"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    preview_replay: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "selection": {
                 *         "of": "dead-letters",
                 *         "destination": "erp",
                 *         "from": "2026-07-23T14:00:00.000Z",
                 *         "to": "2026-07-23T15:00:00.000Z"
                 *       },
                 *       "perSecond": 200
                 *     }
                 */
                "application/json": components["schemas"]["ReplayOrder"];
            };
        };
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "selection": {
                     *         "of": "dead-letters",
                     *         "destination": "erp",
                     *         "from": "2026-07-23T14:00:00.000Z",
                     *         "to": "2026-07-23T15:00:00.000Z"
                     *       },
                     *       "counted": {
                     *         "records": 27778,
                     *         "bytes": 5000040,
                     *         "leftOut": {}
                     *       },
                     *       "groups": [
                     *         {
                     *           "destination": "erp",
                     *           "reason": "expired",
                     *           "records": 27778,
                     *           "bytes": 5000040
                     *         }
                     *       ],
                     *       "again": false,
                     *       "isComplete": true
                     *     }
                     */
                    "application/json": components["schemas"]["ReplayPreview"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_replays: {
        parameters: {
            query?: {
                /**
                 * @description The most entries of an answer, 1 to 1000; default 100.
                 * @example 100
                 */
                limit?: number;
                /**
                 * @description Lists only replays in this state.
                 * @example running
                 */
                state?: "waiting" | "running" | "delivering" | "stopped" | "done";
                /**
                 * @description The beginning of the page, from the answer before.
                 * @example 1784819700000.20260723-151500-3f9a2c
                 */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "replays": [
                     *         {
                     *           "id": "20260723-151500-3f9a2c",
                     *           "state": "running",
                     *           "detail": "",
                     *           "selection": {
                     *             "of": "dead-letters",
                     *             "destination": "erp",
                     *             "from": "2026-07-23T14:00:00.000Z",
                     *             "to": "2026-07-23T15:00:00.000Z"
                     *           },
                     *           "perSecond": 200,
                     *           "again": false,
                     *           "createdBy": "ann",
                     *           "createdAt": "2026-07-23T15:15:00.000Z",
                     *           "counted": {
                     *             "records": 27778,
                     *             "bytes": 5000040,
                     *             "leftOut": {}
                     *           },
                     *           "sent": {
                     *             "records": 8000,
                     *             "bytes": 1440000,
                     *             "leftOut": {}
                     *           },
                     *           "read": {
                     *             "offsets": 24100,
                     *             "of": 83334
                     *           },
                     *           "secondsLeft": 99,
                     *           "owner": "worker-0:7:a1b2c3",
                     *           "owners": 1,
                     *           "notedAt": "2026-07-23T15:15:40.000Z"
                     *         }
                     *       ],
                     *       "cursor": null
                     *     }
                     */
                    "application/json": {
                        replays: components["schemas"]["Replay"][];
                        /** @description The beginning of the next page; null after the last one. */
                        cursor: string | null;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            408: components["responses"]["TooSlow"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    create_replay: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description A text of yours that no other request has, such as a UUID. If you repeat the request with the same key within a day, it is not done again, and the answer is what it was. With another request of the same token, the answer is 422. See docs/admin-api.md.
                 * @example 7f1d6c1e-5c0f-4a1e-9a53-0d6f4f3b2f11
                 */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "selection": {
                 *         "of": "dead-letters",
                 *         "destination": "erp",
                 *         "from": "2026-07-23T14:00:00.000Z",
                 *         "to": "2026-07-23T15:00:00.000Z"
                 *       },
                 *       "perSecond": 200
                 *     }
                 */
                "application/json": components["schemas"]["ReplayOrder"];
            };
        };
        responses: {
            /** @description The call has succeeded. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "20260723-151500-3f9a2c",
                     *       "state": "waiting",
                     *       "detail": "",
                     *       "selection": {
                     *         "of": "dead-letters",
                     *         "destination": "erp",
                     *         "from": "2026-07-23T14:00:00.000Z",
                     *         "to": "2026-07-23T15:00:00.000Z"
                     *       },
                     *       "perSecond": 200,
                     *       "again": false,
                     *       "createdBy": "ann",
                     *       "createdAt": "2026-07-23T15:15:00.000Z",
                     *       "counted": {
                     *         "records": 27778,
                     *         "bytes": 5000040,
                     *         "leftOut": {}
                     *       },
                     *       "sent": {
                     *         "records": 8000,
                     *         "bytes": 1440000,
                     *         "leftOut": {}
                     *       },
                     *       "read": {
                     *         "offsets": 24100,
                     *         "of": 83334
                     *       },
                     *       "secondsLeft": 99,
                     *       "owner": "worker-0:7:a1b2c3",
                     *       "owners": 1,
                     *       "notedAt": "2026-07-23T15:15:40.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Replay"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            422: components["responses"]["OtherRequest"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    show_replay: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of a replay.
                 * @example 20260723-151500-3f9a2c
                 */
                replay: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "20260723-151500-3f9a2c",
                     *       "state": "running",
                     *       "detail": "",
                     *       "selection": {
                     *         "of": "dead-letters",
                     *         "destination": "erp",
                     *         "from": "2026-07-23T14:00:00.000Z",
                     *         "to": "2026-07-23T15:00:00.000Z"
                     *       },
                     *       "perSecond": 200,
                     *       "again": false,
                     *       "createdBy": "ann",
                     *       "createdAt": "2026-07-23T15:15:00.000Z",
                     *       "counted": {
                     *         "records": 27778,
                     *         "bytes": 5000040,
                     *         "leftOut": {}
                     *       },
                     *       "sent": {
                     *         "records": 8000,
                     *         "bytes": 1440000,
                     *         "leftOut": {}
                     *       },
                     *       "read": {
                     *         "offsets": 24100,
                     *         "of": 83334
                     *       },
                     *       "secondsLeft": 99,
                     *       "owner": "worker-0:7:a1b2c3",
                     *       "owners": 1,
                     *       "notedAt": "2026-07-23T15:15:40.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Replay"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    stop_replay: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of a replay.
                 * @example 20260723-151500-3f9a2c
                 */
                replay: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "20260723-151500-3f9a2c",
                     *       "state": "stopped",
                     *       "detail": "",
                     *       "selection": {
                     *         "of": "dead-letters",
                     *         "destination": "erp",
                     *         "from": "2026-07-23T14:00:00.000Z",
                     *         "to": "2026-07-23T15:00:00.000Z"
                     *       },
                     *       "perSecond": 200,
                     *       "again": false,
                     *       "createdBy": "ann",
                     *       "createdAt": "2026-07-23T15:15:00.000Z",
                     *       "counted": {
                     *         "records": 27778,
                     *         "bytes": 5000040,
                     *         "leftOut": {}
                     *       },
                     *       "sent": {
                     *         "records": 8000,
                     *         "bytes": 1440000,
                     *         "leftOut": {}
                     *       },
                     *       "read": {
                     *         "offsets": 24100,
                     *         "of": 83334
                     *       },
                     *       "secondsLeft": 99,
                     *       "owner": "worker-0:7:a1b2c3",
                     *       "owners": 1,
                     *       "notedAt": "2026-07-23T15:15:40.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Replay"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    resume_replay: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of a replay.
                 * @example 20260723-151500-3f9a2c
                 */
                replay: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "20260723-151500-3f9a2c",
                     *       "state": "running",
                     *       "detail": "",
                     *       "selection": {
                     *         "of": "dead-letters",
                     *         "destination": "erp",
                     *         "from": "2026-07-23T14:00:00.000Z",
                     *         "to": "2026-07-23T15:00:00.000Z"
                     *       },
                     *       "perSecond": 200,
                     *       "again": false,
                     *       "createdBy": "ann",
                     *       "createdAt": "2026-07-23T15:15:00.000Z",
                     *       "counted": {
                     *         "records": 27778,
                     *         "bytes": 5000040,
                     *         "leftOut": {}
                     *       },
                     *       "sent": {
                     *         "records": 8000,
                     *         "bytes": 1440000,
                     *         "leftOut": {}
                     *       },
                     *       "read": {
                     *         "offsets": 24100,
                     *         "of": 83334
                     *       },
                     *       "secondsLeft": 99,
                     *       "owner": "worker-0:7:a1b2c3",
                     *       "owners": 1,
                     *       "notedAt": "2026-07-23T15:15:40.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Replay"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    show_log: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "oldest": "2026-07-16T14:00:00.012Z",
                     *       "newest": "2026-07-23T14:03:12.481Z",
                     *       "records": 48210377,
                     *       "behindMs": 0
                     *     }
                     */
                    "application/json": {
                        oldest: string | null;
                        newest: string | null;
                        records: number;
                        /** @description The age of the records that are indexed now. It is 0 if all records are indexed, and null while it is not known. */
                        behindMs: number | null;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            408: components["responses"]["TooSlow"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["UnavailableOrLogUnavailable"];
        };
    };
    show_message: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The `messageId`. If it has slashes, which some proxies refuse, use the search instead.
                 * @example order-4711
                 */
                message: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "messageId": "order-4711",
                     *       "deliveries": [
                     *         {
                     *           "destination": "erp",
                     *           "state": "waiting",
                     *           "dueAt": "2026-07-23T14:04:12.483Z",
                     *           "records": [
                     *             {
                     *               "at": "2026-07-23T14:03:12.481Z",
                     *               "kind": "attempted",
                     *               "isEnd": false,
                     *               "weight": 1,
                     *               "destination": "erp",
                     *               "hook": "main",
                     *               "source": "shop",
                     *               "messageId": "order-4711",
                     *               "messageType": "track",
                     *               "origin": {
                     *                 "topic": "sluice.events",
                     *                 "partition": 3,
                     *                 "offset": 182004
                     *               },
                     *               "attempt": 1,
                     *               "verdict": "retry",
                     *               "outcome": "answer",
                     *               "status": 503,
                     *               "durationMs": 41.2,
                     *               "reason": null,
                     *               "error": null,
                     *               "dueAt": null,
                     *               "firstSeenAt": "2026-07-23T14:03:12.402Z",
                     *               "user": "a1b2c3d4e5f6",
                     *               "replay": null,
                     *               "answer": null
                     *             },
                     *             {
                     *               "at": "2026-07-23T14:03:12.483Z",
                     *               "kind": "parked",
                     *               "isEnd": false,
                     *               "weight": 1,
                     *               "destination": "erp",
                     *               "hook": null,
                     *               "source": "shop",
                     *               "messageId": "order-4711",
                     *               "messageType": "track",
                     *               "origin": {
                     *                 "topic": "sluice.events",
                     *                 "partition": 3,
                     *                 "offset": 182004
                     *               },
                     *               "attempt": 1,
                     *               "verdict": null,
                     *               "outcome": null,
                     *               "status": null,
                     *               "durationMs": null,
                     *               "reason": "failed",
                     *               "error": null,
                     *               "dueAt": "2026-07-23T14:04:12.483Z",
                     *               "firstSeenAt": "2026-07-23T14:03:12.402Z",
                     *               "user": "a1b2c3d4e5f6",
                     *               "replay": null,
                     *               "answer": null
                     *             }
                     *           ]
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        messageId: string;
                        deliveries: components["schemas"]["LogDelivery"][];
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            422: components["responses"]["AnswerTooLarge"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["UnavailableOrLogUnavailable"];
        };
    };
    search_log: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "destination": "erp",
                 *       "isFailed": true,
                 *       "from": "2026-07-23T14:00:00.000Z",
                 *       "limit": 50
                 *     }
                 */
                "application/json": {
                    /** @description The beginning of the time range, which is included, in ISO 8601. Without a zone, it is in UTC. The default is an hour ago. */
                    from?: string;
                    /** @description The end of the time range, which is excluded, in ISO 8601. Without a zone, it is in UTC. The default is now. */
                    to?: string;
                    destination?: string;
                    /** @description The id of a URL of a destination. */
                    hook?: string;
                    source?: string;
                    messageId?: string;
                    /** @description The id of a user: the `userId`, or the `anonymousId` if there is none. The log has only a keyed hash of it, for which `sluice admin` needs `attempts.userKey`. */
                    user?: string;
                    /** @description The value of a field that `attempts.index` names, such as an order number. The log has only a keyed hash of it, as of users. */
                    value?: string;
                    kinds?: ("attempted" | "parked" | "delivered" | "dead" | "superseded" | "suppressed" | "omitted" | "filtered")[];
                    /** @enum {unknown} */
                    outcome?: "answer" | "timeout" | "connection" | "dns" | "proxy" | "certificate" | "address" | "request" | "files" | "login";
                    status?: number;
                    /** @description Why the delivery was parked, dead, left out or filtered. */
                    reason?: string;
                    /** @description The id of the replay that sent the message again. */
                    replay?: string;
                    /** @description If it is true, only failed attempts and dead letters are found. */
                    isFailed?: boolean;
                    /** @description The most records of a page. The default is 100. */
                    limit?: number;
                    cursor?: string;
                };
            };
        };
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "from": "2026-07-23T14:00:00.000Z",
                     *       "to": "2026-07-23T15:00:00.000Z",
                     *       "records": [
                     *         {
                     *           "at": "2026-07-23T14:03:12.481Z",
                     *           "kind": "attempted",
                     *           "isEnd": false,
                     *           "weight": 1,
                     *           "destination": "erp",
                     *           "hook": "main",
                     *           "source": "shop",
                     *           "messageId": "order-4711",
                     *           "messageType": "track",
                     *           "origin": {
                     *             "topic": "sluice.events",
                     *             "partition": 3,
                     *             "offset": 182004
                     *           },
                     *           "attempt": 1,
                     *           "verdict": "retry",
                     *           "outcome": "answer",
                     *           "status": 503,
                     *           "durationMs": 41.2,
                     *           "reason": null,
                     *           "error": null,
                     *           "dueAt": null,
                     *           "firstSeenAt": "2026-07-23T14:03:12.402Z",
                     *           "user": "a1b2c3d4e5f6",
                     *           "replay": null,
                     *           "answer": null
                     *         }
                     *       ],
                     *       "cursor": "NDk1NjI5LjExNA"
                     *     }
                     */
                    "application/json": {
                        /** Format: date-time */
                        from: string;
                        /** Format: date-time */
                        to: string;
                        records: components["schemas"]["LogRecord"][];
                        /** @description The beginning of the next page. It is null on the last page. */
                        cursor: string | null;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            408: components["responses"]["TooSlow"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            422: components["responses"]["AnswerTooLarge"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["UnavailableOrLogUnavailable"];
        };
    };
    count_log: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "destination": "erp",
                 *       "from": "2026-07-23T14:00:00.000Z",
                 *       "to": "2026-07-23T15:00:00.000Z"
                 *     }
                 */
                "application/json": {
                    /** @description The beginning of the time range, which is included, in ISO 8601. Without a zone, it is in UTC. The default is an hour ago. */
                    from?: string;
                    /** @description The end of the time range, which is excluded, in ISO 8601. Without a zone, it is in UTC. The default is now. */
                    to?: string;
                    destination?: string;
                    /** @description The id of a URL of a destination. */
                    hook?: string;
                    source?: string;
                    messageId?: string;
                    /** @description The id of a user: the `userId`, or the `anonymousId` if there is none. The log has only a keyed hash of it, for which `sluice admin` needs `attempts.userKey`. */
                    user?: string;
                    /** @description The value of a field that `attempts.index` names, such as an order number. The log has only a keyed hash of it, as of users. */
                    value?: string;
                    kinds?: ("attempted" | "parked" | "delivered" | "dead" | "superseded" | "suppressed" | "omitted" | "filtered")[];
                    /** @enum {unknown} */
                    outcome?: "answer" | "timeout" | "connection" | "dns" | "proxy" | "certificate" | "address" | "request" | "files" | "login";
                    status?: number;
                    /** @description Why the delivery was parked, dead, left out or filtered. */
                    reason?: string;
                    /** @description The id of the replay that sent the message again. */
                    replay?: string;
                    /** @description If it is true, only failed attempts and dead letters are found. */
                    isFailed?: boolean;
                    /**
                     * @description The length of a step. There may be 1,500 steps. The default is 1m.
                     * @enum {unknown}
                     */
                    step?: "1m" | "5m" | "15m" | "30m" | "1h" | "6h" | "24h";
                    /**
                     * @description `status`: by the status of answers, or by the outcome of requests without an answer. `all`, which is the default with `step`: all are one group.
                     * @enum {unknown}
                     */
                    groupBy?: "all" | "destination" | "status";
                    /** @description The most groups: those with most failed requests and dead letters, then those with most requests. The default is 10. */
                    top?: number;
                };
            };
        };
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "from": "2026-07-23T14:00:00.000Z",
                     *       "to": "2026-07-23T15:00:00.000Z",
                     *       "minutes": [
                     *         {
                     *           "minute": "2026-07-23T14:03:00.000Z",
                     *           "succeeded": 5912,
                     *           "failed": 88,
                     *           "parked": 88,
                     *           "delivered": 0,
                     *           "dead": 0,
                     *           "superseded": 0,
                     *           "suppressed": 0,
                     *           "omitted": 0,
                     *           "filtered": 0,
                     *           "durationMs": {
                     *             "p50": 31.2,
                     *             "p95": 104,
                     *             "p99": 880
                     *           }
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        /** Format: date-time */
                        from: string;
                        /** Format: date-time */
                        to: string;
                        minutes?: components["schemas"]["LogMinute"][];
                        /** @description When each step begins. */
                        times?: string[];
                        /** @description Each list of a group has a number for each of `times`. */
                        groups?: components["schemas"]["LogGroup"][];
                        /** @description How many groups are left out. */
                        others?: number;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            408: components["responses"]["TooSlow"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            422: components["responses"]["AnswerTooLarge"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["UnavailableOrLogUnavailable"];
        };
    };
    summarize_dead_letters: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "destination": "erp",
                 *       "top": 10
                 *     }
                 */
                "application/json": {
                    /** @description The beginning of the time range, which is included, in ISO 8601. Without a zone, it is in UTC. The default is a day ago. The range has 31 days at most. */
                    from?: string;
                    /** @description The end of the time range, which is excluded, in ISO 8601. Without a zone, it is in UTC. The default is now. */
                    to?: string;
                    destination?: string;
                    source?: string;
                    reason?: string;
                    /** @description The most groups: those with most dead letters. The default is 100. */
                    top?: number;
                };
            };
        };
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "from": "2026-07-22T15:00:00.000Z",
                     *       "to": "2026-07-23T15:00:00.000Z",
                     *       "stepSeconds": 60,
                     *       "groups": [
                     *         {
                     *           "destination": "erp",
                     *           "reason": "expired",
                     *           "count": 27778,
                     *           "firstAt": "2026-07-23T14:00:00.000Z",
                     *           "lastAt": "2026-07-23T14:31:00.000Z"
                     *         }
                     *       ],
                     *       "others": 0
                     *     }
                     */
                    "application/json": {
                        /** Format: date-time */
                        from: string;
                        /** Format: date-time */
                        to: string;
                        /** @description The length of a step. */
                        stepSeconds: number;
                        /** @description Those with most dead letters come first. */
                        groups: components["schemas"]["DeadLetterGroup"][];
                        /** @description How many groups are left out. */
                        others: number;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            408: components["responses"]["TooSlow"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            422: components["responses"]["AnswerTooLarge"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["UnavailableOrLogUnavailable"];
        };
    };
    show_content: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The `messageId`. If it has slashes, which some proxies refuse, use the search instead.
                 * @example order-4711
                 */
                message: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "messageId": "order-4711",
                     *       "events": [
                     *         {
                     *           "origin": {
                     *             "topic": "sluice.events",
                     *             "partition": 3,
                     *             "offset": 182004
                     *           },
                     *           "at": "2026-07-23T14:03:12.402Z",
                     *           "source": "shop",
                     *           "body": "{\"type\":\"track\",\"userId\":\"u1\",\"event\":\"Order Completed\",\"messageId\":\"order-4711\",\"timestamp\":\"2026-07-23T14:03:12.402Z\",\"context\":{},\"properties\":{\"total\":30},\"version\":1}",
                     *           "note": null
                     *         }
                     *       ],
                     *       "requests": [
                     *         {
                     *           "destination": "erp",
                     *           "hook": "main",
                     *           "method": "POST",
                     *           "origin": "https://erp.example.com",
                     *           "path": "",
                     *           "isBatched": false,
                     *           "headers": [
                     *             {
                     *               "name": "User-Agent",
                     *               "value": "Sluice/1.0"
                     *             },
                     *             {
                     *               "name": "Content-Type",
                     *               "value": "application/json"
                     *             },
                     *             {
                     *               "name": "X-Api-Key",
                     *               "value": null
                     *             },
                     *             {
                     *               "name": "X-Signature",
                     *               "value": null
                     *             }
                     *           ],
                     *           "body": null
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        messageId: string;
                        events: components["schemas"]["MessageEvent"][];
                        requests: components["schemas"]["MessageRequest"][];
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            422: components["responses"]["AnswerTooLarge"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["UnavailableOrLogUnavailable"];
        };
    };
    list_source_events: {
        parameters: {
            query?: {
                /**
                 * @description The most events of the answer, 1 to 100; default 20.
                 * @example 20
                 */
                limit?: number;
            };
            header?: never;
            path: {
                /**
                 * @description The id of a source.
                 * @example shop
                 */
                source: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "events": [
                     *         {
                     *           "origin": {
                     *             "topic": "sluice.events",
                     *             "partition": 3,
                     *             "offset": 182004
                     *           },
                     *           "at": "2026-07-23T14:03:12.402Z",
                     *           "body": "{\"type\":\"track\",\"userId\":\"u1\",\"event\":\"Order Completed\",\"messageId\":\"order-4711\",\"timestamp\":\"2026-07-23T14:03:12.402Z\",\"context\":{},\"properties\":{\"total\":30},\"version\":1}",
                     *           "note": null
                     *         }
                     *       ],
                     *       "lookedAt": 412,
                     *       "isAll": false
                     *     }
                     */
                    "application/json": {
                        /** @description The newest is the first. */
                        events: components["schemas"]["SourceEvent"][];
                        /** @description How many records were read, of all sources. */
                        lookedAt: number;
                        /** @description It is false if there may be earlier events of the source. */
                        isAll: boolean;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    search_events: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "conditions": [
                 *         "properties.orderId=4711"
                 *       ],
                 *       "source": "shop"
                 *     }
                 */
                "application/json": components["schemas"]["EventSearch"];
            };
        };
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "events": [
                     *         {
                     *           "origin": {
                     *             "topic": "sluice.events",
                     *             "partition": 3,
                     *             "offset": 182004
                     *           },
                     *           "at": "2026-07-23T14:03:12.402Z",
                     *           "source": "shop",
                     *           "messageId": "order-4711",
                     *           "type": "track",
                     *           "body": "{\"type\":\"track\",\"userId\":\"u1\",\"event\":\"Order Completed\",\"messageId\":\"order-4711\",\"timestamp\":\"2026-07-23T14:03:12.402Z\",\"context\":{},\"properties\":{\"total\":30},\"version\":1}"
                     *         }
                     *       ],
                     *       "read": 100000,
                     *       "of": 240112,
                     *       "cursor": "WzI0MDExMiwxNzg0ODE2MDAwMDAwLDE3ODQ4MjMyMDAwMDAsW1sxODIwMDQsMTkwMDAwXV1d"
                     *     }
                     */
                    "application/json": {
                        events: components["schemas"]["FoundEvent"][];
                        /** @description How many records the search has read, in all of its parts. */
                        read: number;
                        /** @description How many records there are to read, as far as offsets tell. */
                        of: number;
                        /** @description The `cursor` of the request for the next part. It is null if all was read. */
                        cursor: string | null;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    preview: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "filter": {
                 *         "condition": "event == \"Order Completed\" && properties.total > 20"
                 *       },
                 *       "mappings": [
                 *         {
                 *           "body": {
                 *             "text": {
                 *               "@template": "{{event}}: {{properties.total}}"
                 *             }
                 *           }
                 *         }
                 *       ],
                 *       "messages": [
                 *         {
                 *           "type": "track",
                 *           "userId": "u1",
                 *           "event": "Order Completed",
                 *           "properties": {
                 *             "total": 30
                 *           },
                 *           "messageId": "order-4711"
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": {
                    /** @description The `filter` of a destination, as in the catalog. */
                    filter?: {
                        [key: string]: unknown;
                    };
                    /** @description The `mappings` of a destination, as in the catalog. */
                    mappings?: {
                        [key: string]: unknown;
                    }[];
                    /** @description Messages as clients send them. */
                    messages: {
                        [key: string]: unknown;
                    }[];
                };
            };
        };
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "results": [
                     *         {
                     *           "messageId": "order-4711",
                     *           "message": "{\"type\":\"track\",\"userId\":\"u1\",\"event\":\"Order Completed\",\"messageId\":\"order-4711\",\"timestamp\":\"2026-07-29T09:30:00.000Z\",\"context\":{},\"properties\":{\"total\":30},\"version\":1}",
                     *           "result": "passes",
                     *           "detail": null,
                     *           "mapping": {
                     *             "place": 0,
                     *             "name": null
                     *           },
                     *           "request": {
                     *             "method": "POST",
                     *             "path": "",
                     *             "headers": [
                     *               {
                     *                 "name": "Content-Type",
                     *                 "value": "application/json"
                     *               }
                     *             ],
                     *             "body": "{\"text\":\"Order Completed: 30\"}",
                     *             "isAlone": false
                     *           }
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        results: components["schemas"]["Previewed"][];
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            408: components["responses"]["TooSlow"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            422: components["responses"]["AnswerTooLargeOrFaulty"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    preview_source: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of a source.
                 * @example shop
                 */
                source: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "filter": {
                 *         "condition": "event == \"Order Completed\" && properties.total > 20"
                 *       },
                 *       "limit": 50
                 *     }
                 */
                "application/json": {
                    /** @description The `filter` of a destination, as in the catalog. */
                    filter?: {
                        [key: string]: unknown;
                    };
                    /** @description The `mappings` of a destination, as in the catalog. */
                    mappings?: {
                        [key: string]: unknown;
                    }[];
                    /** @description The most events, 1 to 100; default 20. */
                    limit?: number;
                };
            };
        };
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "results": [
                     *         {
                     *           "messageId": "order-4711",
                     *           "message": "{\"type\":\"track\",\"userId\":\"u1\",\"event\":\"Order Completed\",\"messageId\":\"order-4711\",\"timestamp\":\"2026-07-29T09:30:00.000Z\",\"context\":{},\"properties\":{\"total\":30},\"version\":1}",
                     *           "result": "passes",
                     *           "detail": null,
                     *           "mapping": {
                     *             "place": 0,
                     *             "name": null
                     *           },
                     *           "request": {
                     *             "method": "POST",
                     *             "path": "",
                     *             "headers": [
                     *               {
                     *                 "name": "Content-Type",
                     *                 "value": "application/json"
                     *               }
                     *             ],
                     *             "body": "{\"text\":\"Order Completed: 30\"}",
                     *             "isAlone": false
                     *           }
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        results: components["schemas"]["Previewed"][];
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            422: components["responses"]["AnswerTooLargeOrFaulty"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    show_status: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "asOf": "2026-07-29T09:30:02.000Z",
                     *       "workers": [
                     *         {
                     *           "name": "sluice-worker-0:17",
                     *           "version": "1.0.0",
                     *           "startedAt": "2026-07-28T09:30:00.000Z",
                     *           "units": 12,
                     *           "toldAt": "2026-07-29T09:30:00.000Z",
                     *           "catalogTrouble": null,
                     *           "catalogCopyAt": null
                     *         }
                     *       ],
                     *       "units": {
                     *         "told": 12,
                     *         "of": 12
                     *       },
                     *       "lag": {
                     *         "records": 31,
                     *         "oldestAt": "2026-07-29T09:30:01.800Z"
                     *       },
                     *       "retrying": 310,
                     *       "waiting": 4200,
                     *       "destinations": {
                     *         "total": 10000,
                     *         "failing": 1,
                     *         "gone": 0,
                     *         "auto_paused": 0,
                     *         "paced": 0,
                     *         "paused": 0,
                     *         "unknown": 0,
                     *         "healthy": 9999,
                     *         "off": 0
                     *       },
                     *       "attention": [
                     *         {
                     *           "destination": "crm",
                     *           "name": "CRM",
                     *           "condition": "failing",
                     *           "since": "2026-07-29T09:15:50.000Z",
                     *           "why": "503 from crm.example.com for 14 min, 4,200 wait, oldest 14 min, 310 wait for their next try, next try in 40 s",
                     *           "next": "sluice destinations status crm"
                     *         }
                     *       ],
                     *       "needAttention": 1,
                     *       "untold": 0,
                     *       "unknown": []
                     *     }
                     */
                    "application/json": components["schemas"]["Status"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            408: components["responses"]["TooSlow"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_destinations: {
        parameters: {
            query?: {
                /**
                 * @description Lists only the destination with this id.
                 * @example crm
                 */
                destination?: string;
                /**
                 * @description Lists only destinations of this source.
                 * @example shop
                 */
                source?: string;
                /**
                 * @description Lists only destinations in this state or condition. `waiting`: messages of it wait for their turn.
                 * @example on
                 */
                state?: "on" | "off" | "paused" | "auto_paused" | "failing" | "gone" | "paced" | "unknown" | "healthy" | "waiting";
                /**
                 * @description Lists only destinations whose id, name or host has this text, in upper or lower case.
                 * @example example.com
                 */
                search?: string;
                /**
                 * @description Lists only destinations with this label.
                 * @example tenant=acme
                 */
                label?: string;
                /**
                 * @description `id`, which is the default: in the order of the ids. `worst`: those that need attention most come first. One that gets worse between two parts of a list may be in none, and one that gets better in both.
                 * @example worst
                 */
                sort?: "id" | "worst";
                /**
                 * @description The `cursor` of an answer. Repeat the other parameters of its request.
                 * @example eyJhZnRlciI6ImNybSJ9
                 */
                cursor?: string;
                /**
                 * @description Lists only destinations whose ids come after this one.
                 * @example billing
                 */
                after?: string;
                /**
                 * @description The most entries of an answer, 1 to 1000; default 100.
                 * @example 100
                 */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "destinations": [
                     *         {
                     *           "id": "crm",
                     *           "name": "CRM",
                     *           "state": "on",
                     *           "labels": {
                     *             "tenant": "acme"
                     *           },
                     *           "sources": [
                     *             "shop"
                     *           ],
                     *           "filter": {
                     *             "types": [
                     *               "track"
                     *             ],
                     *             "events": [
                     *               "Order Completed"
                     *             ]
                     *           },
                     *           "isSigned": true,
                     *           "strategy": "all",
                     *           "maxInFlight": 64,
                     *           "rateLimit": null,
                     *           "batch": null,
                     *           "hooks": [
                     *             {
                     *               "id": "a1b2c3d4",
                     *               "origin": "https://crm.example.com",
                     *               "login": "oauth2",
                     *               "tokenOrigin": "https://login.example.com",
                     *               "certificateEndsAt": "2027-03-01T00:00:00.000Z",
                     *               "hasOwnAuthorities": true,
                     *               "isGone": false,
                     *               "failing": {
                     *                 "since": "2026-07-29T09:15:50.000Z",
                     *                 "isBreakerOpen": true,
                     *                 "answers": [
                     *                   {
                     *                     "outcome": "status 503",
                     *                     "count": 1180
                     *                   },
                     *                   {
                     *                     "outcome": "timeout",
                     *                     "count": 12
                     *                   }
                     *                 ],
                     *                 "lastFailureAt": "2026-07-29T09:30:01.000Z",
                     *                 "lastSuccessAt": null,
                     *                 "loginProblem": null
                     *               }
                     *             }
                     *           ],
                     *           "health": {
                     *             "condition": "failing",
                     *             "since": "2026-07-29T09:15:50.000Z",
                     *             "why": "503 from crm.example.com for 14 min, 4,200 wait, oldest 14 min, 310 wait for their next try, next try in 40 s",
                     *             "nextTryAt": "2026-07-29T09:30:42.000Z",
                     *             "secretEndsAt": null,
                     *             "asOf": "2026-07-29T09:30:00.000Z",
                     *             "waiting": 4200,
                     *             "retrying": 310,
                     *             "retryingAtMost": 310,
                     *             "oldestWaitingSince": "2026-07-29T09:16:02.000Z",
                     *             "drainedInSeconds": 840,
                     *             "inFlightLimit": 12,
                     *             "perSecondLimit": 5,
                     *             "isLimitLowered": true
                     *           }
                     *         }
                     *       ],
                     *       "next": null,
                     *       "cursor": null,
                     *       "total": 1,
                     *       "asOf": "2026-07-29T09:30:02.000Z",
                     *       "areAutoPausesKnown": true,
                     *       "catalogVersion": "3f2a9c0b1d4e"
                     *     }
                     */
                    "application/json": {
                        destinations: components["schemas"]["ListedDestination"][];
                        /** @description The value of `after` in the request for the next destinations. It is null if there are no more, or with `sort=worst`. */
                        next: string | null;
                        /** @description The value of `cursor` in the request for the next destinations. It is null if there are no more. */
                        cursor: string | null;
                        /** @description How many destinations there are, in all parts of the list. */
                        total: number;
                        /**
                         * Format: date-time
                         * @description When this was read from Kafka. It is a few seconds ago, or longer while Kafka does not answer.
                         */
                        asOf: string;
                        /** @description It is false if Kafka has no topic of notices, or if this process may not read it. Destinations that Sluice has paused are then listed as `on`. */
                        areAutoPausesKnown: boolean;
                        /** @description The version of the catalog, as in `sluice_catalog_info`. */
                        catalogVersion: string;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            408: components["responses"]["TooSlow"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    show_destination_health: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of a destination.
                 * @example crm
                 */
                destination: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "destination": "crm",
                     *       "name": "CRM",
                     *       "state": "on",
                     *       "timeoutMs": 2000,
                     *       "batch": null,
                     *       "isSigned": true,
                     *       "asOf": "2026-07-29T09:30:02.000Z",
                     *       "health": {
                     *         "condition": "failing",
                     *         "since": "2026-07-29T09:15:50.000Z",
                     *         "why": "503 from crm.example.com for 14 min, 4,200 wait, oldest 14 min, 310 wait for their next try, next try in 40 s",
                     *         "nextTryAt": "2026-07-29T09:30:42.000Z",
                     *         "secretEndsAt": null,
                     *         "asOf": "2026-07-29T09:30:00.000Z",
                     *         "waiting": 4200,
                     *         "retrying": 310,
                     *         "retryingAtMost": 310,
                     *         "oldestWaitingSince": "2026-07-29T09:16:02.000Z",
                     *         "drainedInSeconds": 840,
                     *         "inFlightLimit": 12,
                     *         "perSecondLimit": 5,
                     *         "isLimitLowered": true
                     *       },
                     *       "hooks": [
                     *         {
                     *           "id": "a1b2c3d4",
                     *           "origin": "https://crm.example.com",
                     *           "login": "oauth2",
                     *           "tokenOrigin": "https://login.example.com",
                     *           "certificateEndsAt": "2027-03-01T00:00:00.000Z",
                     *           "hasOwnAuthorities": true,
                     *           "isGone": false,
                     *           "failing": {
                     *             "since": "2026-07-29T09:15:50.000Z",
                     *             "isBreakerOpen": true,
                     *             "answers": [
                     *               {
                     *                 "outcome": "status 503",
                     *                 "count": 1180
                     *               },
                     *               {
                     *                 "outcome": "timeout",
                     *                 "count": 12
                     *               }
                     *             ],
                     *             "lastFailureAt": "2026-07-29T09:30:01.000Z",
                     *             "lastSuccessAt": null,
                     *             "loginProblem": null
                     *           }
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        destination: string;
                        name: string;
                        /**
                         * @description `auto_paused`: it is `on` in the catalog, but Sluice has paused it.
                         * @enum {string}
                         */
                        state: "on" | "off" | "paused" | "auto_paused";
                        /** @description The time within which the head of an answer has to come, in milliseconds. It is null if `delivery.timeout` applies. */
                        timeoutMs: number | null;
                        /** @description How messages are sent together. `null`: each has a request of its own. */
                        batch: {
                            maxMessages?: number;
                            maxBytes?: number;
                            maxWait?: string;
                            /** @enum {string} */
                            format?: "json" | "ndjson";
                        } | null;
                        /** @description Whether requests are signed, by a shared secret or by a key. */
                        isSigned: boolean;
                        /**
                         * Format: date-time
                         * @description When this was read from Kafka. It is a few seconds ago, or longer while Kafka does not answer.
                         */
                        asOf: string;
                        health: components["schemas"]["Health"];
                        hooks: components["schemas"]["HookState"][];
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    show_signing_keys: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of a destination.
                 * @example crm
                 */
                destination: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "keys": [
                     *         {
                     *           "kty": "OKP",
                     *           "crv": "Ed25519",
                     *           "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
                     *           "kid": "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
                     *           "use": "sig",
                     *           "alg": "EdDSA",
                     *           "whpk": "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        keys: components["schemas"]["SigningKey"][];
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    test_destination: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of a destination.
                 * @example crm
                 */
                destination: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "message": {
                 *         "type": "identify",
                 *         "userId": "u1",
                 *         "traits": {
                 *           "plan": "pro"
                 *         }
                 *       }
                 *     }
                 */
                "application/json": {
                    /** @description The id of the only URL to send to. If it is absent, the message is sent to all URLs. */
                    hook?: string;
                    /** @description A Segment message. If it is absent, a `track` with the event `Sluice Test` is sent. */
                    message?: {
                        [key: string]: unknown;
                    };
                };
            };
        };
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "destination": "crm",
                     *       "messageId": "test-0-1785317403000",
                     *       "isAccepted": false,
                     *       "verdict": "dead_letter",
                     *       "hooks": [
                     *         {
                     *           "hook": "a1b2c3d4",
                     *           "origin": "https://crm.example.com",
                     *           "login": {
                     *             "kind": "oauth2",
                     *             "tokenOrigin": "https://login.example.com",
                     *             "problem": null,
                     *             "durationMs": 61
                     *           },
                     *           "certificateEndsAt": "2027-03-01T00:00:00.000Z",
                     *           "verdict": "final",
                     *           "outcome": "status 401",
                     *           "status": 401,
                     *           "durationMs": 84,
                     *           "answer": "{\"error\":\"bad signature\"}",
                     *           "advice": "The endpoint refuses the signature or a header. Compare the endpoint's secret with sharedSecret, and check the headers of the hook."
                     *         }
                     *       ],
                     *       "notes": []
                     *     }
                     */
                    "application/json": {
                        destination: string;
                        /** @description The `messageId` of the message that was sent. */
                        messageId: string;
                        /** @description Whether every tested URL accepts the message. */
                        isAccepted: boolean;
                        /**
                         * @description What would become of a delivery to all URLs of the destination. It is delivered if one URL accepts it. The verdict is null if only one of several URLs was tested.
                         * @enum {string|null}
                         */
                        verdict: "delivered" | "retry" | "dead_letter" | null;
                        hooks: components["schemas"]["HookTrial"][];
                        /** @description Why a worker would not send this message now, such as a filter or the state. */
                        notes: string[];
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_paused: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "destinations": [
                     *         {
                     *           "destination": "crm",
                     *           "since": "2026-07-23T14:00:03.000Z",
                     *           "pausedAt": "2026-07-28T14:00:12.000Z",
                     *           "lastOutcome": "status 503",
                     *           "cause": "failing"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        destinations: components["schemas"]["PausedDestination"][];
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    resume_destination: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of a destination.
                 * @example crm
                 */
                destination: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "destination": "crm",
                     *       "since": "2026-07-23T14:00:03.000Z",
                     *       "pausedAt": "2026-07-28T14:00:12.000Z",
                     *       "lastOutcome": "status 503",
                     *       "cause": "failing",
                     *       "resumedAt": "2026-07-29T09:30:00.000Z",
                     *       "resumedBy": "ann",
                     *       "workersKnowWithinSeconds": 2
                     *     }
                     */
                    "application/json": {
                        destination: string;
                        /**
                         * Format: date-time
                         * @description The time since which all of its URLs have failed.
                         */
                        since: string;
                        /** Format: date-time */
                        pausedAt: string;
                        /** @description The outcome of its last request. */
                        lastOutcome: string;
                        /**
                         * @description `failing`: its URLs have failed for too long. `gone`: they have answered 410.
                         * @enum {string}
                         */
                        cause: "failing" | "gone";
                        /** Format: date-time */
                        resumedAt: string;
                        resumedBy: string;
                        /** @description Wait this number of seconds before you replay the messages that the destination missed. A worker that does not know yet that it is resumed stops the replay. */
                        workersKnowWithinSeconds: number;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    retry_destination: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of a destination.
                 * @example crm
                 */
                destination: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /** @example {} */
                "application/json": {
                    /** @description The `messageId` of the only message to try. If it is absent, all are tried. */
                    messageId?: string;
                    /** @description If it is true, Sluice only looks whether this can be done. */
                    dryRun?: boolean;
                };
            };
        };
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "destination": "crm",
                     *       "messageId": null,
                     *       "isPreview": false,
                     *       "waiting": null,
                     *       "askedAt": "2026-07-29T09:30:00.000Z",
                     *       "askedBy": "ann",
                     *       "workersKnowWithinSeconds": 2
                     *     }
                     */
                    "application/json": {
                        destination: string;
                        /** @description The only message that is tried. It is null if all are tried. */
                        messageId: string | null;
                        /** @description It is true if nothing was changed. */
                        isPreview: boolean;
                        /** @description How many messages wait for their next try, at least, if it is a preview. It is null if this is not known, or if one message is named. */
                        waiting: number | null;
                        /** Format: date-time */
                        askedAt?: string;
                        askedBy?: string;
                        /** @description A worker that runs begins to send within this number of seconds. */
                        workersKnowWithinSeconds?: number;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    drop_destination: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of a destination.
                 * @example crm
                 */
                destination: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "waiting": true,
                 *       "dryRun": true
                 *     }
                 */
                "application/json": {
                    /**
                     * @description It is always true, because only what waits is dropped.
                     * @constant
                     */
                    waiting: true;
                    /** @description If it is true, Sluice only says how many wait. */
                    dryRun?: boolean;
                };
            };
        };
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "destination": "crm",
                     *       "isPreview": true,
                     *       "waiting": 4200,
                     *       "onRetryTopics": 310,
                     *       "onRetryTopicsAtMost": 310
                     *     }
                     */
                    "application/json": {
                        destination: string;
                        /** @description It is true if nothing was changed. */
                        isPreview: boolean;
                        /** @description How many messages wait for their turn. It is null if the number is not known. */
                        waiting: number | null;
                        /** @description How many messages wait for their next try, at least. It is null if the number is not known. */
                        onRetryTopics: number | null;
                        /** @description How many these are at most. It is null if this is not known. */
                        onRetryTopicsAtMost: number | null;
                        /** Format: date-time */
                        askedAt?: string;
                        askedBy?: string;
                        /** @description A worker that runs begins within this number of seconds. */
                        workersKnowWithinSeconds?: number;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    change_destinations: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description A text of yours that no other request has, such as a UUID. If you repeat the request with the same key within a day, it is not done again, and the answer is what it was. With another request of the same token, the answer is 422. See docs/admin-api.md.
                 * @example 7f1d6c1e-5c0f-4a1e-9a53-0d6f4f3b2f11
                 */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "selection": {
                 *         "label": "tenant=acme"
                 *       },
                 *       "do": "retry-now",
                 *       "dryRun": true
                 *     }
                 */
                "application/json": components["schemas"]["BulkOrder"];
            };
        };
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "do": "retry-now",
                     *       "isPreview": true,
                     *       "selected": 2,
                     *       "destinations": [
                     *         "acme.crm"
                     *       ],
                     *       "skipped": [
                     *         {
                     *           "destination": "acme.erp",
                     *           "why": "The destination \"acme.erp\" is paused in the catalog: what waits is tried when its state becomes on."
                     *         }
                     *       ],
                     *       "unknown": [],
                     *       "revision": null
                     *     }
                     */
                    "application/json": components["schemas"]["BulkDone"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["Outdated"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            422: components["responses"]["FaultyOrOtherRequest"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_audiences: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "asOf": "2026-07-29T09:30:02.000Z",
                     *       "isComplete": true,
                     *       "spaces": [
                     *         {
                     *           "id": "people",
                     *           "name": "People",
                     *           "isOn": true,
                     *           "values": 184002,
                     *           "countedAt": "2026-07-29T09:21:40.000Z",
                     *           "audiences": [
                     *             {
                     *               "key": "big_spenders",
                     *               "values": 12004
                     *             },
                     *             {
                     *               "key": "lifetime_value",
                     *               "values": 171998
                     *             }
                     *           ],
                     *           "otherValues": 0,
                     *           "destinations": [
                     *             {
                     *               "destination": "erp",
                     *               "name": "ERP",
                     *               "state": "needs_backfill",
                     *               "left": 0
                     *             },
                     *             {
                     *               "destination": "crm",
                     *               "name": "CRM",
                     *               "state": "first_sync",
                     *               "left": 4200
                     *             }
                     *           ],
                     *           "connected": 2
                     *         }
                     *       ],
                     *       "untold": 0
                     *     }
                     */
                    "application/json": {
                        /**
                         * Format: date-time
                         * @description When this was read from Kafka.
                         */
                        asOf: string;
                        /** @description It is false if not all workers tell. */
                        isComplete: boolean;
                        spaces: components["schemas"]["AudienceSpace"][];
                        /** @description How many first syncs and destinations are left out, because they are too many. */
                        untold: number;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            408: components["responses"]["TooSlow"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    show_destination: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of a destination.
                 * @example crm
                 */
                destination: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "version": 4711,
                     *       "destination": {
                     *         "id": "crm",
                     *         "sources": [
                     *           "shop"
                     *         ],
                     *         "filter": {
                     *           "condition": "event == \"Order Completed\" && properties.total > 20"
                     *         },
                     *         "sharedSecret": "${kept:2026-07-29T09:30:00.000Z:0123456789abcdef}",
                     *         "hooks": [
                     *           {
                     *             "url": "https://crm.example.com/hook",
                     *             "login": {
                     *               "kind": "oauth2",
                     *               "tokenUrl": "https://login.example.com/oauth2/token",
                     *               "clientId": "sluice",
                     *               "clientSecret": "${kept:2026-07-29T09:30:00.000Z:23456789abcdef01}"
                     *             }
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @description The version of the object. It is also in the header `ETag`, in quotes. */
                        version: number;
                        destination: components["schemas"]["Destination"];
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    put_destination: {
        parameters: {
            query?: {
                /**
                 * @description `true`: judge the change, and change nothing.
                 * @example true
                 */
                dryRun?: boolean;
            };
            header?: {
                /**
                 * @description The `ETag` of the answer in which you have seen the object. If it was changed since, the answer is 412.
                 * @example "4711"
                 */
                "If-Match"?: string;
                /**
                 * @description `*`: make a new object. If there is one, the answer is 412. Send this or `If-Match`.
                 * @example *
                 */
                "If-None-Match"?: "*";
            };
            path: {
                /**
                 * @description The id of a destination.
                 * @example crm
                 */
                destination: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "id": "crm",
                 *       "sources": [
                 *         "shop"
                 *       ],
                 *       "filter": {
                 *         "condition": "event == \"Order Completed\" && properties.total > 20"
                 *       },
                 *       "sharedSecret": "${kept:2026-07-29T09:30:00.000Z:0123456789abcdef}",
                 *       "hooks": [
                 *         {
                 *           "url": "https://crm.example.com/hook",
                 *           "login": {
                 *             "kind": "oauth2",
                 *             "tokenUrl": "https://login.example.com/oauth2/token",
                 *             "clientId": "sluice",
                 *             "clientSecret": "${kept:2026-07-29T09:30:00.000Z:23456789abcdef01}"
                 *           }
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["Destination"];
            };
        };
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "what": "changed",
                     *       "version": 4712,
                     *       "revision": 98,
                     *       "removed": []
                     *     }
                     */
                    "application/json": components["schemas"]["ObjectChanged"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["Outdated"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            422: components["responses"]["Faulty"];
            428: components["responses"]["NoCondition"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    remove_destination: {
        parameters: {
            query?: {
                /**
                 * @description `true`: judge the change, and change nothing.
                 * @example true
                 */
                dryRun?: boolean;
            };
            header?: {
                /**
                 * @description The `ETag` of the answer in which you have seen the object. If it was changed since, the answer is 412.
                 * @example "4711"
                 */
                "If-Match"?: string;
            };
            path: {
                /**
                 * @description The id of a destination.
                 * @example crm
                 */
                destination: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "what": "changed",
                     *       "version": 4712,
                     *       "revision": 98,
                     *       "removed": []
                     *     }
                     */
                    "application/json": components["schemas"]["ObjectChanged"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["Outdated"];
            422: components["responses"]["Faulty"];
            428: components["responses"]["NoCondition"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    patch_destination: {
        parameters: {
            query?: {
                /**
                 * @description `true`: judge the change, and change nothing.
                 * @example true
                 */
                dryRun?: boolean;
            };
            header?: {
                /**
                 * @description The `ETag` of the answer in which you have seen the object. If it was changed since, the answer is 412.
                 * @example "4711"
                 */
                "If-Match"?: string;
            };
            path: {
                /**
                 * @description The id of a destination.
                 * @example crm
                 */
                destination: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Another name"
                 *     }
                 */
                "application/json": {
                    [key: string]: unknown;
                };
            };
        };
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "what": "changed",
                     *       "version": 4712,
                     *       "revision": 98,
                     *       "removed": []
                     *     }
                     */
                    "application/json": components["schemas"]["ObjectChanged"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["Outdated"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            422: components["responses"]["Faulty"];
            428: components["responses"]["NoCondition"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_sources: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "sources": [
                     *         {
                     *           "id": "shop",
                     *           "name": "Web shop",
                     *           "kind": "events",
                     *           "enabled": true,
                     *           "destinations": 12
                     *         }
                     *       ],
                     *       "catalogVersion": "r98"
                     *     }
                     */
                    "application/json": {
                        sources: components["schemas"]["ListedSource"][];
                        catalogVersion: string;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            408: components["responses"]["TooSlow"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    show_source: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of a source.
                 * @example shop
                 */
                source: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "version": 4711,
                     *       "source": {
                     *         "id": "shop",
                     *         "name": "Web shop",
                     *         "writeKeys": [
                     *           "wk_shop"
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @description The version of the object. It is also in the header `ETag`, in quotes. */
                        version: number;
                        source: components["schemas"]["Source"];
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    put_source: {
        parameters: {
            query?: {
                /**
                 * @description `true`: judge the change, and change nothing.
                 * @example true
                 */
                dryRun?: boolean;
            };
            header?: {
                /**
                 * @description The `ETag` of the answer in which you have seen the object. If it was changed since, the answer is 412.
                 * @example "4711"
                 */
                "If-Match"?: string;
                /**
                 * @description `*`: make a new object. If there is one, the answer is 412. Send this or `If-Match`.
                 * @example *
                 */
                "If-None-Match"?: "*";
            };
            path: {
                /**
                 * @description The id of a source.
                 * @example shop
                 */
                source: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "id": "shop",
                 *       "name": "Web shop",
                 *       "writeKeys": [
                 *         "wk_shop"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["Source"];
            };
        };
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "what": "changed",
                     *       "version": 4712,
                     *       "revision": 98,
                     *       "removed": []
                     *     }
                     */
                    "application/json": components["schemas"]["ObjectChanged"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["Outdated"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            422: components["responses"]["Faulty"];
            428: components["responses"]["NoCondition"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    remove_source: {
        parameters: {
            query?: {
                /**
                 * @description `true`: judge the change, and change nothing.
                 * @example true
                 */
                dryRun?: boolean;
            };
            header?: {
                /**
                 * @description The `ETag` of the answer in which you have seen the object. If it was changed since, the answer is 412.
                 * @example "4711"
                 */
                "If-Match"?: string;
            };
            path: {
                /**
                 * @description The id of a source.
                 * @example shop
                 */
                source: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "what": "changed",
                     *       "version": 4712,
                     *       "revision": 98,
                     *       "removed": []
                     *     }
                     */
                    "application/json": components["schemas"]["ObjectChanged"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["Outdated"];
            422: components["responses"]["Faulty"];
            428: components["responses"]["NoCondition"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    patch_source: {
        parameters: {
            query?: {
                /**
                 * @description `true`: judge the change, and change nothing.
                 * @example true
                 */
                dryRun?: boolean;
            };
            header?: {
                /**
                 * @description The `ETag` of the answer in which you have seen the object. If it was changed since, the answer is 412.
                 * @example "4711"
                 */
                "If-Match"?: string;
            };
            path: {
                /**
                 * @description The id of a source.
                 * @example shop
                 */
                source: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Another name"
                 *     }
                 */
                "application/json": {
                    [key: string]: unknown;
                };
            };
        };
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "what": "changed",
                     *       "version": 4712,
                     *       "revision": 98,
                     *       "removed": []
                     *     }
                     */
                    "application/json": components["schemas"]["ObjectChanged"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["Outdated"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            422: components["responses"]["Faulty"];
            428: components["responses"]["NoCondition"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_tokens: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "tokens": [
                     *         {
                     *           "name": "acme-portal",
                     *           "right": "operate",
                     *           "scope": {
                     *             "label": "tenant=acme"
                     *           },
                     *           "expiresAt": "2026-10-27T09:30:00.000Z",
                     *           "content": true,
                     *           "createdBy": "ann",
                     *           "createdAt": "2026-07-29T09:30:00.000Z",
                     *           "hasEnded": false,
                     *           "origin": "topic",
                     *           "lastUsedAt": "2026-07-30T08:00:00.000Z"
                     *         }
                     *       ],
                     *       "usesKnownSince": "2026-07-29T09:00:00.000Z"
                     *     }
                     */
                    "application/json": {
                        tokens: components["schemas"]["ListedToken"][];
                        /**
                         * Format: date-time
                         * @description When the process that answers was started.
                         */
                        usesKnownSince: string;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            408: components["responses"]["TooSlow"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    create_token: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "acme-portal",
                 *       "right": "operate",
                 *       "scope": {
                 *         "label": "tenant=acme"
                 *       },
                 *       "expiresAt": "2026-10-27T09:30:00.000Z"
                 *     }
                 */
                "application/json": {
                    /** @description Who it is for: the audit trail has it. */
                    name: string;
                    /** @enum {unknown} */
                    right: "read" | "operate" | "admin";
                    /** @description Whether the token sees what messages contain, and what endpoints have answered. Absent: it does with the rights `operate` and `admin`, if the token of the request does. */
                    content?: boolean;
                    scope: components["schemas"]["Scope"];
                    /** @description When it ends, in ISO 8601. Absent: in 90 days, or with the token of the request. null: it has no end. */
                    expiresAt?: string | null;
                };
            };
        };
        responses: {
            /** @description The call has succeeded. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "token": "sluice_2yPq3v3m0l8c1cWm5kQ9Yd4i1s7bJx6rT0nUaEhGzVo",
                     *       "name": "acme-portal",
                     *       "right": "operate",
                     *       "scope": {
                     *         "label": "tenant=acme"
                     *       },
                     *       "expiresAt": "2026-10-27T09:30:00.000Z",
                     *       "content": true,
                     *       "createdBy": "ann",
                     *       "createdAt": "2026-07-29T09:30:00.000Z"
                     *     }
                     */
                    "application/json": {
                        /** @description The token, which is shown this once. */
                        token: string;
                        name: string;
                        /** @enum {unknown} */
                        right: "read" | "operate" | "admin";
                        /** @description Whether the token sees what messages contain, and what endpoints have answered. */
                        content: boolean;
                        scope: components["schemas"]["Scope"];
                        /**
                         * Format: date-time
                         * @description When the token ends. It is null if it has no end.
                         */
                        expiresAt: string | null;
                        /** @description The token, or the user of the command line, that made it. It is null for tokens of the file. */
                        createdBy: string | null;
                        /** Format: date-time */
                        createdAt: string | null;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    remove_token: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The name of a token.
                 * @example acme-portal
                 */
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "name": "acme-portal",
                     *       "what": "removed"
                     *     }
                     */
                    "application/json": {
                        name: string;
                        /** @constant */
                        what: "removed";
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_sessions: {
        parameters: {
            query?: {
                /**
                 * @description The most entries of an answer, 1 to 1000; default 100.
                 * @example 100
                 */
                limit?: number;
                /**
                 * @description The `cursor` of an answer.
                 * @example WyJhbm4iLDE3ODUzMTc0MDMwMDAsInNlc3Npb24uNWYiXQ
                 */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "sessions": [
                     *         {
                     *           "id": "session.5f0c2a9be14d7c3368a1b2f4",
                     *           "kind": "person",
                     *           "holder": "person.9be14d7c3368a1b2f45f0c2a",
                     *           "name": "oidc:ann@example.com",
                     *           "rights": [
                     *             "read",
                     *             "operate"
                     *           ],
                     *           "content": true,
                     *           "scope": "all",
                     *           "since": "2026-07-29T09:30:00.000Z",
                     *           "lastUsedAt": "2026-07-29T11:02:10.000Z",
                     *           "endsAt": "2026-07-29T21:30:00.000Z",
                     *           "isOwn": false
                     *         }
                     *       ],
                     *       "total": 1,
                     *       "cursor": null
                     *     }
                     */
                    "application/json": {
                        sessions: components["schemas"]["HeldSession"][];
                        /** @description How many there are, in all parts of the list. */
                        total: number;
                        /** @description The beginning of the next part. It is null after the last one. */
                        cursor: string | null;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            408: components["responses"]["TooSlow"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    remove_session: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of a session.
                 * @example session.5f0c2a9be14d7c3368a1b2f4
                 */
                session: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "ended": 1
                     *     }
                     */
                    "application/json": components["schemas"]["SessionsEnded"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    remove_sessions: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The `holder` of a session.
                 * @example person.9be14d7c3368a1b2f45f0c2a
                 */
                holder: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "ended": 2
                     *     }
                     */
                    "application/json": components["schemas"]["SessionsEnded"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    show_session: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "name": "ann",
                     *       "rights": [
                     *         "read",
                     *         "operate"
                     *       ],
                     *       "content": true,
                     *       "scope": "all",
                     *       "ends": "2026-07-30T09:30:00.000Z",
                     *       "label": null,
                     *       "catalog": "topic",
                     *       "isLink": false,
                     *       "theme": {
                     *         "name": "Acme webhooks",
                     *         "accent": "#0a7d55",
                     *         "scheme": "system",
                     *         "logo": "theme/logo.svg"
                     *       },
                     *       "isSession": true
                     *     }
                     */
                    "application/json": {
                        /** @description The name of the token that has signed in. */
                        name: string;
                        /** @description The rights of the token, or those of the link. */
                        rights: ("read" | "operate" | "admin" | "see" | "answers" | "replay" | "test" | "edit_url" | "rotate")[];
                        /** @description Whether it sees what messages contain, and what endpoints have answered. With the right `answers`, a link sees the answers without it. */
                        content: boolean;
                        scope: components["schemas"]["Scope"];
                        /**
                         * Format: date-time
                         * @description When it ends at the latest. A session also ends when it is not used for `admin.sessionIdleTimeout`. It is null for a token without an end.
                         */
                        ends: string | null;
                        /** @description The label of the scope. */
                        label: string | null;
                        /**
                         * @description Where the catalog is. One in a file is edited there, and not by this API.
                         * @enum {unknown}
                         */
                        catalog: "file" | "topic";
                        /** @description Whether a link has begun the session. */
                        isLink: boolean;
                        /** @description How the console looks, by the settings `admin.console…`. */
                        theme: {
                            name: string | null;
                            /** @description A colour, such as `#0a7d55`. */
                            accent: string | null;
                            /**
                             * @description Whether it is light or dark, for who has chosen nothing.
                             * @enum {unknown}
                             */
                            scheme: "system" | "light" | "dark";
                            /** @description The path of the logo, below that of the console. */
                            logo: string | null;
                        } | null;
                        /** @description Whether a cookie has shown this, and no token. */
                        isSession: boolean;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            408: components["responses"]["TooSlow"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    sign_in: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "token": "sluice_2yPq3v3m0l8c1cWm5kQ9Yd4i1s7bJx6rT0nUaEhGzVo"
                 *     }
                 */
                "application/json": {
                    /** @description A token of the admin API. */
                    token?: string;
                    /** @description What a link of `POST /v1/links` has after `#link=`. */
                    link?: string;
                    /** @description A code of `POST /v1/session/codes`, which works once. */
                    code?: string;
                };
            };
        };
        responses: {
            /** @description The call has succeeded. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    sign_out: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    create_code: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "code": "sluice_code_2yPq3v3m0l8c1cWm5kQ9Yd4i1s7bJx6rT0nUaEhGzVo",
                     *       "expiresAt": "2026-07-29T09:31:00.000Z",
                     *       "path": "/console/#code=sluice_code_2yPq3v3m0l8c1cWm5kQ9Yd4i1s7bJx6rT0nUaEhGzVo"
                     *     }
                     */
                    "application/json": {
                        code: string;
                        /** Format: date-time */
                        expiresAt: string;
                        /** @description The address of the console with the code: a URL if `admin.publicUrl` is set. */
                        path: string;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_links: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "links": [
                     *         {
                     *           "id": "link.5f0c2a9be14d7c3368a1b2f4",
                     *           "name": "initech",
                     *           "label": "tenant=initech",
                     *           "rights": [
                     *             "see",
                     *             "replay"
                     *           ],
                     *           "expiresAt": "2026-08-05T09:30:00.000Z",
                     *           "createdBy": "ann",
                     *           "createdAt": "2026-07-29T09:30:00.000Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        links: components["schemas"]["Link"][];
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            408: components["responses"]["TooSlow"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    create_link: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "initech",
                 *       "label": "tenant=initech",
                 *       "rights": [
                 *         "see",
                 *         "replay"
                 *       ]
                 *     }
                 */
                "application/json": {
                    /** @description Who it is for: the audit trail has it. */
                    name: string;
                    label: string;
                    /** @description `see`: destinations, their health, the delivery log. `answers`: what endpoints have answered to failed requests, for which the token needs content itself. `replay`: send again, try now. `test`: send test messages. `edit_url`: change URLs, and nothing else. `rotate`: replace secrets. */
                    rights: ("see" | "answers" | "replay" | "test" | "edit_url" | "rotate")[];
                    /** @description When it ends, in ISO 8601: in at most 90 days. Absent: in 7 days. */
                    expiresAt?: string;
                };
            };
        };
        responses: {
            /** @description The call has succeeded. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "link": "https://ops.example.com/console/#link=sluice_link_2yPq3v3m0l8c1cWm5kQ9Yd4i1s7bJx6rT0nUaEhGzVo",
                     *       "id": "link.5f0c2a9be14d7c3368a1b2f4",
                     *       "name": "initech",
                     *       "label": "tenant=initech",
                     *       "rights": [
                     *         "see",
                     *         "replay"
                     *       ],
                     *       "expiresAt": "2026-08-05T09:30:00.000Z",
                     *       "createdBy": "ann",
                     *       "createdAt": "2026-07-29T09:30:00.000Z"
                     *     }
                     */
                    "application/json": {
                        /** @description The link, which is shown this once: a URL if `admin.publicUrl` is set, or else its path. */
                        link: string;
                        id: string;
                        /** @description Who it is for: the audit trail has it. */
                        name: string;
                        /** @description What it shows: the destinations and sources with this label. */
                        label: string;
                        rights: ("see" | "answers" | "replay" | "test" | "edit_url" | "rotate")[];
                        /** Format: date-time */
                        expiresAt: string;
                        createdBy: string;
                        /** Format: date-time */
                        createdAt: string;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    remove_link: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of a link.
                 * @example link.5f0c2a9be14d7c3368a1b2f4
                 */
                link: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "link.5f0c2a9be14d7c3368a1b2f4",
                     *       "what": "removed"
                     *     }
                     */
                    "application/json": {
                        id: string;
                        /** @constant */
                        what: "removed";
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    live: {
        parameters: {
            query?: {
                /**
                 * @description Only what concerns this destination.
                 * @example erp
                 */
                destination?: string;
                /**
                 * @description Only attempts of messages of this source.
                 * @example shop
                 */
                source?: string;
                /**
                 * @description Only attempts of this message.
                 * @example order-4711
                 */
                message?: string;
            };
            header?: {
                /**
                 * @description The `id` of the last event that was seen. Browsers send it when they come back.
                 * @example 9f86d081884c.1207
                 */
                "Last-Event-ID"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            408: components["responses"]["TooSlow"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    rotate_secret: {
        parameters: {
            query?: {
                /**
                 * @description `true`: judge the change, and change nothing.
                 * @example true
                 */
                dryRun?: boolean;
                /**
                 * @description `true`: for the keys of Ed25519 (signing.ed25519) instead of the shared secret.
                 * @example true
                 */
                ed25519?: boolean;
            };
            header?: {
                /**
                 * @description A text of yours that no other request has, such as a UUID. If you repeat the request with the same key within a day, it is not done again, and the answer is what it was. With another request of the same token, the answer is 422. See docs/admin-api.md.
                 * @example 7f1d6c1e-5c0f-4a1e-9a53-0d6f4f3b2f11
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of a destination.
                 * @example crm
                 */
                destination: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /** @example {} */
                "application/json": {
                    /** @description When the old secret ends by itself (ISO 8601). Absent: when somebody ends it. */
                    oldSecretEndsAt?: string;
                };
            };
        };
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "destination": "crm",
                     *       "state": "both",
                     *       "secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD3bsZXHNp2rE=",
                     *       "publicKey": null,
                     *       "version": 4713,
                     *       "revision": 99
                     *     }
                     */
                    "application/json": {
                        destination: string;
                        /**
                         * @description first: there was no secret. both: the old secret stays valid beside the new one. ended: only the new one is used.
                         * @enum {string}
                         */
                        state: "first" | "both" | "ended";
                        /** @description The new secret. null: none was made. */
                        secret: string | null;
                        /** @description The public key of the new key of Ed25519. null: none was made. */
                        publicKey: string | null;
                        /** @description The version of the destination. It is also in the header `ETag`. */
                        version: number;
                        /** @description The number of the last change of the catalog. */
                        revision: number;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["Outdated"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            422: components["responses"]["FaultyOrOtherRequest"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    end_secret: {
        parameters: {
            query?: {
                /**
                 * @description `true`: judge the change, and change nothing.
                 * @example true
                 */
                dryRun?: boolean;
                /**
                 * @description `true`: for the keys of Ed25519 (signing.ed25519) instead of the shared secret.
                 * @example true
                 */
                ed25519?: boolean;
            };
            header?: {
                /**
                 * @description A text of yours that no other request has, such as a UUID. If you repeat the request with the same key within a day, it is not done again, and the answer is what it was. With another request of the same token, the answer is 422. See docs/admin-api.md.
                 * @example 7f1d6c1e-5c0f-4a1e-9a53-0d6f4f3b2f11
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of a destination.
                 * @example crm
                 */
                destination: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "destination": "crm",
                     *       "state": "ended",
                     *       "secret": null,
                     *       "publicKey": null,
                     *       "version": 4713,
                     *       "revision": 99
                     *     }
                     */
                    "application/json": {
                        destination: string;
                        /**
                         * @description first: there was no secret. both: the old secret stays valid beside the new one. ended: only the new one is used.
                         * @enum {string}
                         */
                        state: "first" | "both" | "ended";
                        /** @description The new secret. null: none was made. */
                        secret: string | null;
                        /** @description The public key of the new key of Ed25519. null: none was made. */
                        publicKey: string | null;
                        /** @description The version of the destination. It is also in the header `ETag`. */
                        version: number;
                        /** @description The number of the last change of the catalog. */
                        revision: number;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["Outdated"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            422: components["responses"]["FaultyOrOtherRequest"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_catalog_changes: {
        parameters: {
            query?: {
                /**
                 * @description The most entries of an answer, 1 to 1000; default 100.
                 * @example 100
                 */
                limit?: number;
                /**
                 * @description Only what concerns this object.
                 * @example destination/crm
                 */
                object?: string;
                /**
                 * @description The beginning of the page, from the answer before.
                 * @example 4711
                 */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "changes": [
                     *         {
                     *           "revision": 1785317403,
                     *           "at": "2026-07-29T09:30:00.000Z",
                     *           "by": "ann",
                     *           "undoes": null,
                     *           "count": 1,
                     *           "isWhole": true,
                     *           "objects": [
                     *             {
                     *               "object": "destination/crm",
                     *               "what": "changed"
                     *             }
                     *           ],
                     *           "fields": null
                     *         }
                     *       ],
                     *       "cursor": "4711"
                     *     }
                     */
                    "application/json": {
                        changes: components["schemas"]["CatalogChange"][];
                        /** @description The beginning of the next page; null after the last one. */
                        cursor: string | null;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    show_catalog_change: {
        parameters: {
            query?: {
                /**
                 * @description The most entries of an answer, 1 to 1000; default 100.
                 * @example 100
                 */
                limit?: number;
                /**
                 * @description Only what concerns this object.
                 * @example destination/crm
                 */
                object?: string;
                /**
                 * @description The beginning of the page, from the answer before.
                 * @example 4711
                 */
                cursor?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The revision of a change.
                 * @example 1785317403
                 */
                revision: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "revision": 1785317403,
                     *       "at": "2026-07-29T09:30:00.000Z",
                     *       "by": "ann",
                     *       "undoes": null,
                     *       "count": 1,
                     *       "objects": [
                     *         {
                     *           "object": "destination/crm",
                     *           "what": "changed",
                     *           "fields": [
                     *             {
                     *               "field": "state",
                     *               "before": "on",
                     *               "after": "paused"
                     *             }
                     *           ]
                     *         }
                     *       ],
                     *       "cursor": null
                     *     }
                     */
                    "application/json": {
                        /** @description The number of the change. */
                        revision: number;
                        /** Format: date-time */
                        at: string;
                        /** @description The name of a token, or a user of the command line. */
                        by: string;
                        /** @description The revision that this change has undone. */
                        undoes: number | null;
                        /** @description How many objects it has changed. */
                        count: number;
                        objects: {
                            /** @description The kind and the id of the object. */
                            object: string;
                            /** @enum {string} */
                            what: "created" | "changed" | "removed";
                            fields: components["schemas"]["FieldChange"][];
                        }[];
                        /** @description The beginning of the next page; null after the last one. */
                        cursor: string | null;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    undo_catalog_change: {
        parameters: {
            query?: {
                /**
                 * @description `true`: judge the change, and change nothing.
                 * @example true
                 */
                dryRun?: boolean;
            };
            header?: {
                /**
                 * @description A text of yours that no other request has, such as a UUID. If you repeat the request with the same key within a day, it is not done again, and the answer is what it was. With another request of the same token, the answer is 422. See docs/admin-api.md.
                 * @example 7f1d6c1e-5c0f-4a1e-9a53-0d6f4f3b2f11
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The revision of a change.
                 * @example 1785317403
                 */
                revision: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "revision": 1785317404,
                     *       "undoes": 1785317403,
                     *       "count": 1,
                     *       "objects": [
                     *         {
                     *           "object": "destination/crm",
                     *           "what": "changed",
                     *           "fields": [
                     *             {
                     *               "field": "state",
                     *               "before": "paused",
                     *               "after": "on"
                     *             }
                     *           ]
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        /** @description The number of the last change of the catalog. */
                        revision: number;
                        undoes: number;
                        /** @description How many objects it has changed. */
                        count: number;
                        /** @description The first 100 of them, with the fields that differ by the undo. */
                        objects: {
                            /** @description The kind and the id of the object. */
                            object: string;
                            /** @enum {string} */
                            what: "created" | "changed" | "removed";
                            fields: components["schemas"]["FieldChange"][];
                        }[];
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["Outdated"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            422: components["responses"]["FaultyOrOtherRequest"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    apply_catalog: {
        parameters: {
            query?: {
                /**
                 * @description `true`: judge the change, and change nothing.
                 * @example true
                 */
                dryRun?: boolean;
            };
            header?: {
                /**
                 * @description A text of yours that no other request has, such as a UUID. If you repeat the request with the same key within a day, it is not done again, and the answer is what it was. With another request of the same token, the answer is 422. See docs/admin-api.md.
                 * @example 7f1d6c1e-5c0f-4a1e-9a53-0d6f4f3b2f11
                 */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "destinations": [
                 *         {
                 *           "id": "crm",
                 *           "sources": [
                 *             "shop"
                 *           ],
                 *           "hooks": [
                 *             {
                 *               "url": "https://crm.example.com/hook"
                 *             }
                 *           ]
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": {
                    sources?: components["schemas"]["Source"][];
                    destinations?: components["schemas"]["Destination"][];
                    /** @description A label, such as `tenant=acme`: objects that have it and are not in the body are removed. */
                    prune?: string;
                    /** @description `true`: prunes although nothing in the body has the label, so that all objects with it are removed. Otherwise, this is refused. */
                    allowEmpty?: boolean;
                };
            };
        };
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "isPreview": false,
                     *       "revision": 1785317405,
                     *       "count": 1,
                     *       "objects": [
                     *         {
                     *           "object": "destination/crm",
                     *           "what": "created"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        /** @description It is true if nothing was changed. */
                        isPreview: boolean;
                        /** @description The number of the last change of the catalog. */
                        revision: number;
                        /** @description How many objects are made, changed or removed. */
                        count: number;
                        objects: {
                            /** @description The kind and the id of the object. */
                            object: string;
                            /** @enum {string} */
                            what: "created" | "changed" | "removed";
                        }[];
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["TooSlow"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["Outdated"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnknownType"];
            422: components["responses"]["FaultyOrOtherRequest"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_audit: {
        parameters: {
            query?: {
                /**
                 * @description The most entries of an answer, 1 to 1000; default 100.
                 * @example 100
                 */
                limit?: number;
                /**
                 * @description Only of this replay.
                 * @example 20260723-151500-3f9a2c
                 */
                replay?: string;
                /**
                 * @description The beginning of the time range, included. ISO 8601; without a zone it is UTC.
                 * @example 2026-07-23T00:00:00Z
                 */
                from?: string;
                /**
                 * @description The end of that time range, excluded.
                 * @example 2026-07-24T00:00:00Z
                 */
                to?: string;
                /**
                 * @description The beginning of the page, from the answer before.
                 * @example 4711
                 */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call has succeeded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "entries": [
                     *         {
                     *           "at": "2026-07-23T15:15:00.000Z",
                     *           "lastAt": "2026-07-23T15:15:00.000Z",
                     *           "count": 1,
                     *           "by": "ann",
                     *           "action": "created",
                     *           "replay": "20260723-151500-3f9a2c",
                     *           "destination": null,
                     *           "records": 27778,
                     *           "detail": "dead letters of destination erp"
                     *         }
                     *       ],
                     *       "cursor": "4711",
                     *       "completeSince": null
                     *     }
                     */
                    "application/json": {
                        entries: components["schemas"]["AuditEntry"][];
                        /** @description The beginning of the next page; null after the last one. */
                        cursor: string | null;
                        /** @description Earlier entries may be missing, because only 20,000 are in memory. null: all of the 90 days are there. */
                        completeSince: string | null;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["NoToken"];
            403: components["responses"]["NotAllowedOrOtherSite"];
            408: components["responses"]["TooSlow"];
            429: components["responses"]["Busy"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
}

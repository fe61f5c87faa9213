// Generated from internal/httpapi/openapi.yaml by `npm run types`.

export interface paths {
    "/v1/{collection}/{id}/like": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                collection: components["parameters"]["Collection"];
                id: components["parameters"]["Id"];
            };
            cookie?: never;
        };
        /**
         * The caller's own state and the count of one item
         * @description Without a token `liked` is false. An unknown item has count 0.
         */
        get: operations["getLike"];
        /**
         * Like an item
         * @description Durable when answered. A repeat changes nothing and is answered like the first. There is no body, or an empty object.
         */
        put: operations["like"];
        post?: never;
        /**
         * Take a like back
         * @description As PUT; unliking what is not liked changes nothing and is a 200.
         */
        delete: operations["unlike"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/{collection}/{id}/likers": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                collection: components["parameters"]["Collection"];
                id: components["parameters"]["Id"];
            };
            cookie?: never;
        };
        /**
         * Who likes an item, newest first
         * @description Follow `next_cursor` until it is absent. A walk finds everyone who likes the item throughout, nobody twice.
         */
        get: operations["likers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/{collection}/{id}/likers/among": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                collection: components["parameters"]["Collection"];
                id: components["parameters"]["Id"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Which of these users like an item */
        post: operations["likersAmong"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/likes/counts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Counts of up to 100 items
         * @description Every query parameter is a collection with ids: `?posts=1,2&games=7`. Values are decoded and then split at commas, so an id with a comma needs POST, and so do collections named `token` and `access_token`. Entries come in the order of the query, one per id asked for, repeats included. An unknown item has count 0.
         */
        get: operations["counts"];
        put?: never;
        /** Counts of up to 100 items, and which friends like them */
        post: operations["countsByBody"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/likes/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Counts that tick, as server-sent events
         * @description The query is that of counts, with up to 50 items. The stream begins with `retry`, drawn anew for each stream, and
         *     the counts of all items; after that it has, at most once a second, the newest count of each item that changed:
         *
         *         event: counts
         *         id: 7K2M4QXA3B-2s-1f0c8xk2m
         *         data: {"counts":[{"collection":"posts","id":"1","count":124,"display":"124","version":"87"}]}
         *
         *     Counts are absolute, so a repeat is harmless. `version` is a number of up to 20 digits in a string that only grows;
         *     of one item the larger version is the newer count. Values in between may be left out, and always are for a client
         *     that reads slowly; one that does not take an event within 5 seconds is cut off.
         *
         *     `id` is a resume point, to be sent back unchanged as `Last-Event-ID` with a request for the same items: then only
         *     what changed since comes first. With any other value all counts come first. Lines with a colon only are signs of
         *     life, about every 15 seconds. When the server shuts down, `retry` says how long to wait before the next attempt.
         *
         *     A user may have 5 streams, an address without a token 20; all of these limits are settings.
         */
        get: operations["stream"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/likes/ws": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Counts that tick, over a WebSocket
         * @description The client says what it watches: `{"subscribe":{"posts":["1","2"]}}`, `{"unsubscribe":{"posts":["2"]}}`, or both in
         *     one message, with up to 50 items watched at a time. Each subscription is answered with the counts of its items,
         *     and changes follow as in a stream:
         *
         *         {"type":"counts","counts":[{"collection":"posts","id":"1","count":124,"display":"124","version":"87"}]}
         *
         *     A message that is not one of these, or more than 5 a second (20 at once), is answered with
         *     `{"type":"error","code":"invalid_message","detail":"…"}` or the code `rate_limited`, and the connection is closed
         *     with 1008 and the code as the reason; while totals cannot be read it is `unavailable` and 1013. A message of more
         *     than 16 KiB closes it with 1009. The server pings; who does not answer is cut off. When the server shuts down it
         *     closes with 1012 and the reason `retry: ` with the milliseconds to wait.
         *
         *     Browsers may connect from pages of this server and of the configured origins. They cannot send a token here.
         */
        get: operations["socket"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/me/likes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the caller likes, newest first */
        get: operations["myLikes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/likes:batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Apply up to 1,000 commands of any users
         * @description For trusted backends: the token needs the scope `likes:write:any`, and `likes:import` where a command has `liked_at`, the original time of a like (cut to the microsecond; at most a minute ahead). Commands are applied in order. If one is not valid, none is applied, and the detail names it. After a 5xx some may be applied; repeating the request is harmless. The limit of a user does not apply.
         */
        post: operations["batch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** This document */
        get: operations["openapi"];
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
        Collection: string;
        /** @description At most 128 bytes. */
        Id: string;
        /** @description At most 128 bytes. */
        User: string;
        Users: components["schemas"]["User"][];
        /** @description Opaque; valid only for the list that returned it. */
        Cursor: string;
        /** Format: date-time */
        LikedAt: string;
        Outcome: {
            liked: boolean;
            /** Format: int64 */
            count: number;
            age_ms?: components["schemas"]["Age"];
        };
        /** @description Present only in answers to reads, when the store could not be read. The count was last known to be right this long ago. */
        Age: number;
        Counts: {
            counts: {
                collection: components["schemas"]["Collection"];
                id: components["schemas"]["Id"];
                /** Format: int64 */
                count: number;
                /** @description The count in short, rounded half up. */
                display: string;
                /** @description Present with a token only. */
                liked_by_me?: boolean;
                age_ms?: components["schemas"]["Age"];
                /** @description Present when the request names friends. */
                friends?: {
                    count: number;
                    /** @description The first of them, in request order. */
                    sample: components["schemas"]["User"][];
                };
            }[];
        };
        Problem: {
            type: string;
            title: string;
            status: number;
            code: string;
            detail?: string;
            request_id: string;
        };
    };
    responses: {
        /** @description Not valid; nothing was changed. */
        BadRequest: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "Cache-Control": components["headers"]["CacheControl"];
                Vary: components["headers"]["Vary"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description No token where one is needed, or one that is not accepted. */
        Unauthorized: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "Cache-Control": components["headers"]["CacheControl"];
                Vary: components["headers"]["Vary"];
                "WWW-Authenticate": components["headers"]["WWWAuthenticate"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The token lacks a scope. */
        Forbidden: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "Cache-Control": components["headers"]["CacheControl"];
                Vary: components["headers"]["Vary"];
                "WWW-Authenticate": components["headers"]["WWWAuthenticate"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The page that asks is of an origin that is not configured. */
        OriginNotAllowed: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "Cache-Control": components["headers"]["CacheControl"];
                Vary: components["headers"]["Vary"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The body came too slowly. */
        BodyTimeout: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "Cache-Control": components["headers"]["CacheControl"];
                Vary: components["headers"]["Vary"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The body is too large. */
        BodyTooLarge: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "Cache-Control": components["headers"]["CacheControl"];
                Vary: components["headers"]["Vary"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The URL is too long. */
        UriTooLong: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "Cache-Control": components["headers"]["CacheControl"];
                Vary: components["headers"]["Vary"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The body is not JSON. */
        UnsupportedMediaType: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "Cache-Control": components["headers"]["CacheControl"];
                Vary: components["headers"]["Vary"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Too many requests; nothing was changed. */
        RateLimited: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "Cache-Control": components["headers"]["CacheControl"];
                Vary: components["headers"]["Vary"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimitPolicy"];
                "Retry-After": components["headers"]["RetryAfter"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The token is too long. */
        HeadersTooLarge: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "Cache-Control": components["headers"]["CacheControl"];
                Vary: components["headers"]["Vary"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description A failure that is not the caller's. */
        Internal: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "Cache-Control": components["headers"]["CacheControl"];
                Vary: components["headers"]["Vary"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Try again later; a repeat is harmless. */
        Unavailable: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "Cache-Control": components["headers"]["CacheControl"];
                Vary: components["headers"]["Vary"];
                "Retry-After": components["headers"]["RetryAfter"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
    };
    parameters: {
        Collection: components["schemas"]["Collection"];
        Id: components["schemas"]["Id"];
        Cursor: components["schemas"]["Cursor"];
        Limit: number;
    };
    requestBodies: {
        Nothing: {
            content: {
                "application/json": Record<string, never>;
            };
        };
    };
    headers: {
        RequestId: string;
        CacheControl: "private, no-store" | "public, max-age=1" | "public, max-age=300";
        Vary: string;
        /** @description What is left of a limit and the seconds until it is full: `"user";r=7;t=1`. */
        RateLimit: string;
        /** @description The limit: `"user";q=10;w=2` is 10 at once, refilled in 2 seconds. */
        RateLimitPolicy: string;
        /** @description Whole seconds. For 503 they are spread at random. */
        RetryAfter: number;
        WWWAuthenticate: string;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    getLike: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                collection: components["parameters"]["Collection"];
                id: components["parameters"]["Id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The caller's state after the command, and the count including the caller's own like. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Cache-Control": components["headers"]["CacheControl"];
                    Vary: components["headers"]["Vary"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Outcome"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            408: components["responses"]["BodyTimeout"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    like: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                collection: components["parameters"]["Collection"];
                id: components["parameters"]["Id"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Nothing"];
        responses: {
            /** @description The caller's state after the command, and the count including the caller's own like. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Cache-Control": components["headers"]["CacheControl"];
                    Vary: components["headers"]["Vary"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Outcome"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            408: components["responses"]["BodyTimeout"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    unlike: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                collection: components["parameters"]["Collection"];
                id: components["parameters"]["Id"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Nothing"];
        responses: {
            /** @description The caller's state after the command, and the count including the caller's own like. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Cache-Control": components["headers"]["CacheControl"];
                    Vary: components["headers"]["Vary"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Outcome"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            408: components["responses"]["BodyTimeout"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    likers: {
        parameters: {
            query?: {
                cursor?: components["parameters"]["Cursor"];
                limit?: components["parameters"]["Limit"];
            };
            header?: never;
            path: {
                collection: components["parameters"]["Collection"];
                id: components["parameters"]["Id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Cache-Control": components["headers"]["CacheControl"];
                    Vary: components["headers"]["Vary"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        likers: {
                            user: components["schemas"]["User"];
                            liked_at: components["schemas"]["LikedAt"];
                        }[];
                        next_cursor?: components["schemas"]["Cursor"];
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            408: components["responses"]["BodyTimeout"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    likersAmong: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                collection: components["parameters"]["Collection"];
                id: components["parameters"]["Id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    users: components["schemas"]["Users"];
                };
            };
        };
        responses: {
            /** @description Exact. Users are in request order, each once. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Cache-Control": components["headers"]["CacheControl"];
                    Vary: components["headers"]["Vary"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        count: number;
                        users: components["schemas"]["Users"];
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            408: components["responses"]["BodyTimeout"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    counts: {
        parameters: {
            query?: {
                /** @description Collections and their ids, as above. There is no parameter of this name. */
                collections?: {
                    [key: string]: string;
                };
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One entry per requested item, in request order. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Cache-Control": components["headers"]["CacheControl"];
                    Vary: components["headers"]["Vary"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Counts"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            408: components["responses"]["BodyTimeout"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    countsByBody: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    items: {
                        collection: components["schemas"]["Collection"];
                        id: components["schemas"]["Id"];
                    }[];
                    friends?: components["schemas"]["Users"];
                };
            };
        };
        responses: {
            /** @description One entry per requested item, in request order. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Cache-Control": components["headers"]["CacheControl"];
                    Vary: components["headers"]["Vary"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Counts"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            408: components["responses"]["BodyTimeout"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    stream: {
        parameters: {
            query?: {
                /** @description Collections and their ids, as for counts. There is no parameter of this name. */
                collections?: {
                    [key: string]: string;
                };
            };
            header?: {
                /** @description The id of the last event of an earlier stream. */
                "Last-Event-ID"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A stream without an end. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            408: components["responses"]["BodyTimeout"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    socket: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The connection is a WebSocket now. */
            101: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["OriginNotAllowed"];
            408: components["responses"]["BodyTimeout"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    myLikes: {
        parameters: {
            query?: {
                cursor?: components["parameters"]["Cursor"];
                limit?: components["parameters"]["Limit"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Cache-Control": components["headers"]["CacheControl"];
                    Vary: components["headers"]["Vary"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimitPolicy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        likes: {
                            collection: components["schemas"]["Collection"];
                            id: components["schemas"]["Id"];
                            liked_at: components["schemas"]["LikedAt"];
                        }[];
                        next_cursor?: components["schemas"]["Cursor"];
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            408: components["responses"]["BodyTimeout"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    batch: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    commands: {
                        /** @enum {string} */
                        op: "like" | "unlike";
                        collection: components["schemas"]["Collection"];
                        id: components["schemas"]["Id"];
                        user: components["schemas"]["User"];
                        /**
                         * Format: date-time
                         * @description RFC 3339, after 1970; only with `like`.
                         */
                        liked_at?: string;
                    }[];
                };
            };
        };
        responses: {
            /** @description One result per command, in order. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Cache-Control": components["headers"]["CacheControl"];
                    Vary: components["headers"]["Vary"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        results: components["schemas"]["Outcome"][];
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["BodyTimeout"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    openapi: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OpenAPI 3.1. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Cache-Control": components["headers"]["CacheControl"];
                    Vary: components["headers"]["Vary"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            408: components["responses"]["BodyTimeout"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["UriTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["RateLimited"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
}

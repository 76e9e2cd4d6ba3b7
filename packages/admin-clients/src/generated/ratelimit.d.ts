export interface paths {
    "/v1/overrides": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the overrides in force */
        get: operations["listOverrides"];
        /** Set another limit for one descriptor, for a time */
        put: operations["setOverride"];
        post?: never;
        /** End the override of a descriptor */
        delete: operations["removeOverride"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/counters/peek": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Get the limits of descriptors and the state of their counters. Counts nothing */
        post: operations["peekCounters"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/counters/peek/domains": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Peek into the counters of several domains. At most 100 descriptors in all */
        post: operations["peekDomains"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/counters/reset": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Reset the counters of descriptors, or all that begin with a prefix */
        post: operations["resetCounters"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/reservations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Reserve an estimate of hits. 429 with `Retry-After` if they do not fit */
        post: operations["reserveHits"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/reservations/commit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Replace the estimate of a reservation by the real number of hits */
        post: operations["commitReservation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/top": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the descriptors with the most hits in the last one to two minutes, of this replica */
        get: operations["listTopKeys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the descriptors with the most hits in the last hour by minute, of this replica */
        get: operations["listKeysOfHour"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/refusals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the last descriptors that were over their limit, newest first, of this replica */
        get: operations["listRefusals"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/domains": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the domains of the rules in force, with the hits of this replica since its start */
        get: operations["listDomains"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/limits": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the limits in force, with the hits of this replica since its start */
        get: operations["listLimits"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/trial": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Compare the rules on trial with those in force, by the requests of this replica */
        get: operations["getTrial"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/settings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the settings in force, without secrets, and the warnings of the start */
        get: operations["getSettings"];
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
        ServiceSettings: {
            /** @example xds */
            service: string;
            /** @example 0.1.0 */
            version: string;
            /**
             * @description Host name of the replica.
             * @example tollgate-xds-6c8d7f9b5-4k2lm
             */
            replica: string;
            /**
             * Format: date-time
             * @description When the process started.
             */
            started: string;
            /** @description Warnings and errors in the log of the start, at most 100. */
            warnings: {
                /** @enum {unknown} */
                level: "warning" | "error";
                /** @example unknown setting, possibly misspelled */
                message: string;
                /**
                 * @example {
                 *       "variable": "DEBUG_PROT",
                 *       "meant": "DEBUG_PORT"
                 *     }
                 */
                details: {
                    [key: string]: string;
                };
            }[];
            settings: {
                /**
                 * @description The main variable.
                 * @example DEBUG_PORT
                 */
                name: string;
                /** @example Server */
                group: string;
                /** @example TCP port of the debug server. */
                description: string;
                /**
                 * @description The form of values.
                 * @example a TCP port, 0 to 65535
                 */
                form: string;
                /**
                 * @description The value may be a credential: there is no `value` and no `default`.
                 * @example false
                 */
                secret: boolean;
                /** @description Whether a value that is not empty is set. */
                set: boolean;
                /** @description Whether the value is another one than the default. */
                changed: boolean;
                /**
                 * @description The value in force. Passwords in URLs are hidden.
                 * @example 6071
                 */
                value?: string;
                /**
                 * @description Absent: the setting is required.
                 * @example 6070
                 */
                default?: string;
                /**
                 * @example environment
                 * @enum {unknown}
                 */
                source: "default" | "environment" | "file";
                /**
                 * @description The name that is set.
                 * @example DEBUG_PORT
                 */
                variable?: string;
                /**
                 * @description Path of the file, or the setting that the default depends on.
                 * @example /etc/tollgate/server.env
                 */
                from?: string;
            }[];
        };
        Entry: {
            key: string;
            value: string;
        };
        /** @description A RateLimitDescriptor of Envoy in proto3 JSON; `limit` and `hitsAddend` are possible, too. */
        Descriptor: {
            entries: components["schemas"]["Entry"][];
        } & {
            [key: string]: unknown;
        };
        /** @description A RateLimitRequest of Envoy in proto3 JSON, with at most 100 descriptors; `hitsAddend` is possible, too. */
        RateLimitRequest: {
            domain: string;
            descriptors: components["schemas"]["Descriptor"][];
        } & {
            [key: string]: unknown;
        };
        PeekListRequest: {
            requests: components["schemas"]["RateLimitRequest"][];
        };
        OverrideRequest: {
            domain: string;
            descriptors: components["schemas"]["Descriptor"][];
            requestsPerUnit: number;
            /** @description Of a token bucket. */
            burst?: number;
            ttlSeconds: number;
            reason: string;
        };
        ResetRequest: components["schemas"]["RateLimitRequest"] | components["schemas"]["PrefixRequest"];
        PrefixRequest: {
            domain: string;
            prefix: components["schemas"]["PrefixEntry"][];
        };
        /** @description Only the last entry may be without a value. */
        PrefixEntry: {
            key: string;
            value?: string;
        };
        ReservationRequest: {
            domain: string;
            descriptors: components["schemas"]["Descriptor"][];
            hits: number;
            /** @default 60 */
            ttlSeconds: number;
        };
        CommitRequest: {
            id: string;
            hits: number;
        };
        Override: {
            domain: string;
            entries: components["schemas"]["Entry"][];
            requestsPerUnit: number;
            burst?: number;
            /** Format: date-time */
            until: string;
            reason: string;
            /** @description The caller who set it. */
            setBy: string;
        };
        OverrideList: {
            overrides: components["schemas"]["Override"][];
            /** @description `after` of the next page. Absent on the last one. */
            next?: string;
        };
        /** @description The entries of the counter. */
        Counted: {
            domain: string;
            entries: components["schemas"]["Entry"][];
        };
        Counter: {
            rule: string;
            name?: string;
            /** @enum {unknown} */
            algorithm: "fixed_window" | "sliding_window" | "token_bucket" | "concurrency";
            requestsPerUnit: number;
            unit: string;
            burst?: number;
            shadowMode: boolean;
            /** @description The key in the store. */
            key: string;
            count: number;
            remaining: number;
            /** @description The hits of the request exceed the limit now. */
            over: boolean;
            /** @description Seconds. */
            resetSeconds: number;
            warning?: string;
            override?: components["schemas"]["Override"];
        };
        Peek: {
            domain: string;
            descriptors: {
                entries: components["schemas"]["Entry"][];
                /** @enum {unknown} */
                outcome: "limited" | "unlimited" | "none";
                counter?: components["schemas"]["Counter"];
            }[];
            wouldBeRefused: boolean;
        };
        /** @description One for each request, in the same order. */
        PeekList: {
            peeks: components["schemas"]["Peek"][];
        };
        Reset: {
            domain: string;
            counters: {
                key: string;
                count: number;
            }[];
        } | {
            domain: string;
            prefixes: string[];
            deleted: number;
        };
        Reservation: {
            domain: string;
            id: string;
            /** Format: date-time */
            until: string;
        };
        Commit: {
            domain: string;
            reserved: number;
            hits: number;
            over: boolean;
        };
        TopKeys: {
            /** @description Seconds. */
            seconds: number;
            /** @description Each key may have had as many more hits. */
            maxMissedHits: number;
            keys: {
                domain: string;
                entries: components["schemas"]["Entry"][];
                hits: number;
            }[];
        };
        KeysOfHour: {
            /**
             * Format: date-time
             * @description Beginning of the first minute.
             */
            since: string;
            /** @description False when keys were left out, since there were too many. */
            complete: boolean;
            keys: {
                domain: string;
                entries: components["schemas"]["Entry"][];
                rule: string;
                name?: string;
                /** @enum {unknown} */
                algorithm: "fixed_window" | "sliding_window" | "token_bucket" | "concurrency";
                requestsPerUnit: number;
                unit: string;
                burst?: number;
                shadowMode: boolean;
                /** @description The request brought the limit, and no rule. */
                fromRequest: boolean;
                override?: components["schemas"]["Override"];
                /** @description Hits of each minute, refused ones included. */
                hits: number[];
                /** @description Hits of each minute that this limit refused. */
                refused: number[];
                /** @description Most hits in a second of each minute. */
                peakSecond: number[];
                /** @description Hits of each minute that may be missing, of each of the three. Former versions do not report it. */
                missed?: number[];
            }[];
        };
        RefusalList: {
            refusals: {
                /** Format: date-time */
                time: string;
                domain: string;
                entries: components["schemas"]["Entry"][];
                rule: string;
                requestsPerUnit: number;
                unit: string;
                hits: number;
                /**
                 * @description The code of the request.
                 * @enum {unknown}
                 */
                code: "OK" | "OVER_LIMIT";
            }[];
        };
        DomainList: {
            domains: {
                domain: string;
                limits: number;
                hits: number;
                nearLimit: number;
                overLimit: number;
            }[];
            /** @description `after` of the next page. Absent on the last one. */
            next?: string;
        };
        LimitList: {
            limits: components["schemas"]["ListedLimit"][];
            /** @description `after` of the next page. Absent on the last one. */
            next?: string;
        };
        ListedLimit: {
            domain: string;
            /** @description Path of the rule, which begins with its domain. */
            path: string;
            rule: string;
            name?: string;
            /** @enum {unknown} */
            algorithm: "fixed_window" | "sliding_window" | "token_bucket" | "concurrency";
            requestsPerUnit: number;
            unit: string;
            burst?: number;
            shadowMode: boolean;
            quotaMode: boolean;
            /** @description Absent without hits, and where the metrics of the rule have values of requests. */
            counts?: {
                hits: number;
                nearLimit: number;
                overLimit: number;
            };
        };
        Trial: {
            trial?: {
                version: string;
                /** Format: date-time */
                since: string;
                domains: number;
                rules: number;
            };
            notCompared: {
                dropped: number;
                failed: number;
            };
            domains: {
                domain: string;
                requests: number;
                wouldRefuse: number;
                refused: number;
                newlyRefused: number;
                newlyAllowed: number;
                wouldRefusePercent: number;
                refusedPercent: number;
            }[];
            rules: {
                domain: string;
                rule: string;
                limit: string;
                requests: number;
                wouldRefuse: number;
                refused: number;
                newlyRefused: number;
                newlyAllowed: number;
                wouldRefusePercent: number;
                refusedPercent: number;
            }[];
        };
        Error: {
            /** @description Stable; docs/errors.md lists them. */
            code: string;
            message: string;
            /** @description Seconds. */
            retryAfterSeconds?: number;
        };
    };
    responses: {
        /** @description The request was refused. */
        Refused: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The store or the rules are not available. Try again later. */
        Failed: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    listOverrides: {
        parameters: {
            query?: {
                /** @description All domains by default. */
                domain?: string;
                /** @description Most items. */
                limit?: number;
                /** @description Items whose path has this text. */
                search?: string;
                /** @description `next` of the page before. */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "overrides": [
                     *         {
                     *           "domain": "shop",
                     *           "entries": [
                     *             {
                     *               "key": "user",
                     *               "value": "ann"
                     *             }
                     *           ],
                     *           "requestsPerUnit": 100,
                     *           "burst": 0,
                     *           "until": "2026-01-01T09:30:00.000Z",
                     *           "reason": "sale",
                     *           "setBy": "support"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["OverrideList"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    setOverride: {
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
                 *       "domain": "shop",
                 *       "descriptors": [
                 *         {
                 *           "entries": [
                 *             {
                 *               "key": "user",
                 *               "value": "ann"
                 *             }
                 *           ]
                 *         }
                 *       ],
                 *       "requestsPerUnit": 100,
                 *       "ttlSeconds": 1,
                 *       "reason": "sale"
                 *     }
                 */
                "application/json": components["schemas"]["OverrideRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "domain": "shop",
                     *       "entries": [
                     *         {
                     *           "key": "user",
                     *           "value": "ann"
                     *         }
                     *       ],
                     *       "requestsPerUnit": 100,
                     *       "burst": 0,
                     *       "until": "2026-01-01T09:30:00.000Z",
                     *       "reason": "sale",
                     *       "setBy": "support"
                     *     }
                     */
                    "application/json": components["schemas"]["Override"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    removeOverride: {
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
                 *       "domain": "shop",
                 *       "descriptors": [
                 *         {
                 *           "entries": [
                 *             {
                 *               "key": "user",
                 *               "value": "ann"
                 *             }
                 *           ]
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["RateLimitRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "domain": "shop",
                     *       "entries": [
                     *         {
                     *           "key": "user",
                     *           "value": "ann"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Counted"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    peekCounters: {
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
                 *       "domain": "shop",
                 *       "descriptors": [
                 *         {
                 *           "entries": [
                 *             {
                 *               "key": "user",
                 *               "value": "ann"
                 *             }
                 *           ]
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["RateLimitRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "domain": "shop",
                     *       "descriptors": [
                     *         {
                     *           "entries": [
                     *             {
                     *               "key": "user",
                     *               "value": "ann"
                     *             }
                     *           ],
                     *           "outcome": "limited",
                     *           "counter": {
                     *             "rule": "user",
                     *             "algorithm": "fixed_window",
                     *             "requestsPerUnit": 100,
                     *             "unit": "hour",
                     *             "burst": 0,
                     *             "shadowMode": true,
                     *             "key": "user",
                     *             "count": 1,
                     *             "remaining": 0,
                     *             "over": true,
                     *             "resetSeconds": 0,
                     *             "override": {
                     *               "domain": "shop",
                     *               "entries": [
                     *                 {
                     *                   "key": "user",
                     *                   "value": "ann"
                     *                 }
                     *               ],
                     *               "requestsPerUnit": 100,
                     *               "burst": 0,
                     *               "until": "2026-01-01T09:30:00.000Z",
                     *               "reason": "sale",
                     *               "setBy": "support"
                     *             }
                     *           }
                     *         }
                     *       ],
                     *       "wouldBeRefused": true
                     *     }
                     */
                    "application/json": components["schemas"]["Peek"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    peekDomains: {
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
                 *       "requests": [
                 *         {
                 *           "domain": "shop",
                 *           "descriptors": [
                 *             {
                 *               "entries": [
                 *                 {
                 *                   "key": "user",
                 *                   "value": "ann"
                 *                 }
                 *               ]
                 *             }
                 *           ]
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["PeekListRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "peeks": [
                     *         {
                     *           "domain": "shop",
                     *           "descriptors": [
                     *             {
                     *               "entries": [
                     *                 {
                     *                   "key": "user",
                     *                   "value": "ann"
                     *                 }
                     *               ],
                     *               "outcome": "limited",
                     *               "counter": {
                     *                 "rule": "user",
                     *                 "algorithm": "fixed_window",
                     *                 "requestsPerUnit": 100,
                     *                 "unit": "hour",
                     *                 "burst": 0,
                     *                 "shadowMode": true,
                     *                 "key": "user",
                     *                 "count": 1,
                     *                 "remaining": 0,
                     *                 "over": true,
                     *                 "resetSeconds": 0,
                     *                 "override": {
                     *                   "domain": "shop",
                     *                   "entries": [
                     *                     {
                     *                       "key": "user",
                     *                       "value": "ann"
                     *                     }
                     *                   ],
                     *                   "requestsPerUnit": 100,
                     *                   "burst": 0,
                     *                   "until": "2026-01-01T09:30:00.000Z",
                     *                   "reason": "sale",
                     *                   "setBy": "support"
                     *                 }
                     *               }
                     *             }
                     *           ],
                     *           "wouldBeRefused": true
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["PeekList"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    resetCounters: {
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
                 *       "domain": "shop",
                 *       "descriptors": [
                 *         {
                 *           "entries": [
                 *             {
                 *               "key": "user",
                 *               "value": "ann"
                 *             }
                 *           ]
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["ResetRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "domain": "shop",
                     *       "counters": [
                     *         {
                     *           "key": "user",
                     *           "count": 1
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Reset"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    reserveHits: {
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
                 *       "domain": "shop",
                 *       "descriptors": [
                 *         {
                 *           "entries": [
                 *             {
                 *               "key": "user",
                 *               "value": "ann"
                 *             }
                 *           ]
                 *         }
                 *       ],
                 *       "hits": 1
                 *     }
                 */
                "application/json": components["schemas"]["ReservationRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "domain": "shop",
                     *       "id": "eyJkb21haW4iOiJzaG9wIn0.Zx3c",
                     *       "until": "2026-01-01T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Reservation"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    commitReservation: {
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
                 *       "id": "eyJkb21haW4iOiJzaG9wIn0.Zx3c",
                 *       "hits": 0
                 *     }
                 */
                "application/json": components["schemas"]["CommitRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "domain": "shop",
                     *       "reserved": 0,
                     *       "hits": 0,
                     *       "over": true
                     *     }
                     */
                    "application/json": components["schemas"]["Commit"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    listTopKeys: {
        parameters: {
            query?: {
                /** @description All domains by default. */
                domain?: string;
                /** @description Most items. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "seconds": 0,
                     *       "maxMissedHits": 0,
                     *       "keys": [
                     *         {
                     *           "domain": "shop",
                     *           "entries": [
                     *             {
                     *               "key": "user",
                     *               "value": "ann"
                     *             }
                     *           ],
                     *           "hits": 0
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["TopKeys"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    listKeysOfHour: {
        parameters: {
            query?: {
                /** @description All domains by default. */
                domain?: string;
                /** @description Most items. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "since": "2026-01-01T09:30:00.000Z",
                     *       "complete": true,
                     *       "keys": [
                     *         {
                     *           "domain": "shop",
                     *           "entries": [
                     *             {
                     *               "key": "user",
                     *               "value": "ann"
                     *             }
                     *           ],
                     *           "rule": "user",
                     *           "algorithm": "fixed_window",
                     *           "requestsPerUnit": 100,
                     *           "unit": "hour",
                     *           "burst": 0,
                     *           "shadowMode": true,
                     *           "fromRequest": true,
                     *           "override": {
                     *             "domain": "shop",
                     *             "entries": [
                     *               {
                     *                 "key": "user",
                     *                 "value": "ann"
                     *               }
                     *             ],
                     *             "requestsPerUnit": 100,
                     *             "burst": 0,
                     *             "until": "2026-01-01T09:30:00.000Z",
                     *             "reason": "sale",
                     *             "setBy": "support"
                     *           },
                     *           "hits": [
                     *             0
                     *           ],
                     *           "refused": [
                     *             0
                     *           ],
                     *           "peakSecond": [
                     *             0
                     *           ],
                     *           "missed": [
                     *             0
                     *           ]
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["KeysOfHour"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    listRefusals: {
        parameters: {
            query?: {
                /** @description All domains by default. */
                domain?: string;
                /** @description Most items. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "refusals": [
                     *         {
                     *           "time": "2026-01-01T09:30:00.000Z",
                     *           "domain": "shop",
                     *           "entries": [
                     *             {
                     *               "key": "user",
                     *               "value": "ann"
                     *             }
                     *           ],
                     *           "rule": "user",
                     *           "requestsPerUnit": 100,
                     *           "unit": "hour",
                     *           "hits": 0,
                     *           "code": "OK"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["RefusalList"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    listDomains: {
        parameters: {
            query?: {
                /** @description All domains by default. */
                domain?: string;
                /** @description Most items. */
                limit?: number;
                /** @description Items whose path has this text. */
                search?: string;
                /** @description `next` of the page before. */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "domains": [
                     *         {
                     *           "domain": "shop",
                     *           "limits": 0,
                     *           "hits": 0,
                     *           "nearLimit": 0,
                     *           "overLimit": 0
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["DomainList"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    listLimits: {
        parameters: {
            query?: {
                /** @description All domains by default. */
                domain?: string;
                /** @description Most items. */
                limit?: number;
                /** @description Items whose path has this text. */
                search?: string;
                /** @description `next` of the page before. */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LimitList"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    getTrial: {
        parameters: {
            query?: {
                /** @description All domains by default. */
                domain?: string;
                /** @description Most items. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Trial"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    getSettings: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "service": "xds",
                     *       "version": "0.1.0",
                     *       "replica": "tollgate-xds-6c8d7f9b5-4k2lm",
                     *       "started": "2026-01-01T09:30:00.000Z",
                     *       "warnings": [
                     *         {
                     *           "level": "warning",
                     *           "message": "unknown setting, possibly misspelled",
                     *           "details": {
                     *             "variable": "DEBUG_PROT",
                     *             "meant": "DEBUG_PORT"
                     *           }
                     *         }
                     *       ],
                     *       "settings": [
                     *         {
                     *           "name": "DEBUG_PORT",
                     *           "group": "Server",
                     *           "description": "TCP port of the debug server.",
                     *           "form": "a TCP port, 0 to 65535",
                     *           "secret": false,
                     *           "set": true,
                     *           "changed": true,
                     *           "value": "6071",
                     *           "default": "6070",
                     *           "source": "environment",
                     *           "variable": "DEBUG_PORT",
                     *           "from": "/etc/tollgate/server.env"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["ServiceSettings"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
}

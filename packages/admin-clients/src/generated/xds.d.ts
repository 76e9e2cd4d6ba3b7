export interface paths {
    "/v1/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the state of the server: its source, what it serves, and what is held back */
        get: operations["getStatus"];
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
    "/v1/objects": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List access policies and limits with their conditions, by kind, namespace and name */
        get: operations["listObjects"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/objects/{kind}/{namespace}/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get an object with its findings, its versions and the clients that have acknowledged it */
        get: operations["getObject"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/objects/{kind}/{namespace}/{name}/versions/{generation}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the manifest of a version, to compare it or to apply it again with `kubectl apply -f -` */
        get: operations["getObjectVersion"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/validate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Evaluate manifests against what is live, as if they were applied. Stores nothing */
        post: operations["validateManifests"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/clients": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the limiters and auth servers that are connected to this replica, by kind and node id */
        get: operations["listClients"];
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
        ClientCount: {
            connected: number;
            acknowledged: number;
        };
        Condition: {
            type: string;
            /** @enum {unknown} */
            status: "True" | "False" | "Unknown";
            reason: string;
            /** @description May have several lines, `<field>: <message>`. */
            message: string;
            /** @description The Gateway that it is about. Absent: the object. */
            target?: string;
        };
        Finding: {
            /** @enum {unknown} */
            severity: "error" | "warning";
            /** @description JSON path in the manifest, such as `spec.hosts[0]`. */
            field?: string;
            message: string;
            line?: number;
            column?: number;
        };
        ObjectSummary: {
            /** @enum {unknown} */
            kind: "AccessPolicy" | "RateLimitConfig";
            namespace: string;
            name: string;
            /** @enum {unknown} */
            source: "kubernetes" | "folder";
            /** @description File and number of the document. */
            file?: string;
            /** @description 0 is the version before a restart, of a folder. */
            generation: number;
            /** @description Whether the newest version is accepted as a whole. */
            accepted: boolean;
            /** @description The generation in force. Absent: none is. */
            inForce?: number;
            /** @description Why it stays in force although it was deleted. */
            heldBack?: string;
            /** @description The domain of a RateLimitConfig. */
            domain?: string;
            /** @description Class of the limiters that get it. Absent: all do. */
            limiterClass?: string;
            /** @description Limits of a RateLimitConfig that are in force. */
            limits?: number;
            conditions: components["schemas"]["Condition"][];
            /** @description Clients of all replicas that get it. Absent: it has nothing for them. */
            clients: {
                limiters?: components["schemas"]["ClientCount"];
                authServers?: components["schemas"]["ClientCount"];
            };
        };
        ObjectCounts: {
            total: number;
            refused: number;
        };
        ObjectList: {
            /** @description Name of the replica of the xDS server. */
            replica: string;
            objects: components["schemas"]["ObjectSummary"][];
            /** @description Items on all pages. */
            total: number;
            /** @description `cursor` of the next page. Absent: there is none. */
            next?: string;
            /** @description Without the filters of the request. */
            counts: {
                AccessPolicy: components["schemas"]["ObjectCounts"];
                RateLimitConfig: components["schemas"]["ObjectCounts"];
            };
        };
        ObjectVersion: {
            /** @description 0 is the version before a restart, of a folder. */
            generation: number;
            /**
             * Format: date-time
             * @description Absent: before the start of this replica.
             */
            readAt?: string;
            /** @description Absent: it was replaced before it was evaluated. */
            accepted?: boolean;
            inForce: boolean;
        };
        Acknowledgement: {
            /** @enum {unknown} */
            clients: "limiter" | "auth-server";
            /** @description Name of the ADS resource that the object is in. */
            resource: string;
            /** @description At this replica. */
            connected: number;
            acknowledged: number;
            /** @description At most 500, first the clients that have not acknowledged it. */
            list: components["schemas"]["AcknowledgingClient"][];
        };
        AcknowledgingClient: {
            /** @description The node id that the client has chosen. May be empty. */
            node: string;
            /** @description Name in the client certificate. */
            identity?: string;
            address: string;
            acknowledged: boolean;
            /** @description Version of the resource that it has. Absent: none. */
            version?: string;
            /** @description Version of the resource that it should have. */
            wanted?: string;
            /**
             * Format: date-time
             * @description When it acknowledged all that it has now.
             */
            acknowledgedAt?: string;
            rejection?: {
                /** @description The version that was refused. */
                version: string;
                /** Format: date-time */
                at: string;
                message: string;
            };
        };
        ObjectDetail: {
            /** @description Name of the replica of the xDS server. */
            replica: string;
            /** @enum {unknown} */
            kind: "AccessPolicy" | "RateLimitConfig";
            namespace: string;
            name: string;
            /** @enum {unknown} */
            source: "kubernetes" | "folder";
            /** @description File and number of the document. */
            file?: string;
            /** @description 0 is the version before a restart, of a folder. */
            generation: number;
            /** @description Whether the newest version is accepted as a whole. */
            accepted: boolean;
            /** @description The generation in force. Absent: none is. */
            inForce?: number;
            /** @description Why it stays in force although it was deleted. */
            heldBack?: string;
            /** @description The domain of a RateLimitConfig. */
            domain?: string;
            /** @description Class of the limiters that get it. Absent: all do. */
            limiterClass?: string;
            /** @description Limits of a RateLimitConfig that are in force. */
            limits?: number;
            conditions: components["schemas"]["Condition"][];
            /** @description Clients of all replicas that get it. Absent: it has nothing for them. */
            clients: {
                limiters?: components["schemas"]["ClientCount"];
                authServers?: components["schemas"]["ClientCount"];
            };
            /** @description YAML of the newest version. */
            manifest: string;
            /** @description Problems and warnings of the newest version. */
            findings: components["schemas"]["Finding"][];
            /** @description The newest first, at most 11. */
            versions: components["schemas"]["ObjectVersion"][];
            acknowledgements: components["schemas"]["Acknowledgement"][];
        };
        ObjectManifest: {
            /** @enum {unknown} */
            kind: "AccessPolicy" | "RateLimitConfig";
            namespace: string;
            name: string;
            /** @description 0 is the version before a restart, of a folder. */
            generation: number;
            /** @description YAML without `status` and what the API server adds. */
            manifest: string;
        };
        ValidationRequest: {
            /** @description YAML or JSON documents, at most 100 objects. Each is evaluated without the others. */
            manifests: string;
        };
        Validation: {
            /** @description Name of the replica of the xDS server. */
            replica: string;
            /** @description Whether all would be accepted as a whole. */
            accepted: boolean;
            /** @description Why a document is not an object. */
            problems: {
                line?: number;
                column?: number;
                message: string;
            }[];
            objects: components["schemas"]["ValidatedObject"][];
        };
        ValidatedObject: {
            /** @enum {unknown} */
            kind: "AccessPolicy" | "RateLimitConfig";
            namespace: string;
            name: string;
            /** @description Whether the source has an object of this name. */
            exists: boolean;
            /** @description The generation that `changes` compares it with. */
            inForce?: number;
            accepted: boolean;
            conditions: components["schemas"]["Condition"][];
            findings: components["schemas"]["Finding"][];
            /** @description Against the version in force. */
            changes: components["schemas"]["SpecChange"][];
            /** @description Changes that are not listed. */
            moreChanges: number;
        };
        SpecChange: {
            /** @description JSON path, in the new version unless it is removed. */
            field: string;
            /** @description Absent: it is added. */
            before?: unknown;
            /** @description Absent: it is removed. */
            after?: unknown;
        };
        Client: {
            /** @enum {unknown} */
            kind: "limiter" | "auth-server";
            /** @description The node id that the client has chosen. May be empty. */
            node: string;
            /** @description Name in the client certificate. */
            identity?: string;
            address: string;
            limiterClass?: string;
            /**
             * @description State of the world, or incremental ADS.
             * @enum {unknown}
             */
            protocol: "sotw" | "delta";
            /** Format: date-time */
            connectedAt: string;
            /** @enum {unknown} */
            state: "current" | "behind" | "refusing";
            /** @description The version of all its resources that it acknowledged last. */
            version?: string;
            /** Format: date-time */
            acknowledgedAt?: string;
            /** @description Time since the version in force came into force that it does not have. 0: it has it. */
            lagSeconds: number;
            rejection?: {
                /** @description The version that was refused. */
                version: string;
                /** Format: date-time */
                at: string;
                message: string;
            };
        };
        ClientList: {
            /** @description Name of the replica of the xDS server. */
            replica: string;
            clients: components["schemas"]["Client"][];
            /** @description Items on all pages. */
            total: number;
            /** @description `cursor` of the next page. Absent: there is none. */
            next?: string;
            replicas: components["schemas"]["ReplicaClients"][];
        };
        /** @description Numbers of clients of each replica. The clients of others are in their lists only. */
        ReplicaClients: {
            /** @description Name of the replica of the xDS server. */
            replica: string;
            limiters: components["schemas"]["ClientStates"];
            authServers: components["schemas"]["ClientStates"];
        };
        ClientStates: {
            connected: number;
            current: number;
            refusing: number;
        };
        Status: {
            /** @description Name of the replica of the xDS server. */
            replica: string;
            /** @description Release of the server. */
            release: string;
            ready: boolean;
            /** @description Why it is not ready. */
            reason?: string;
            source: {
                /** @enum {unknown} */
                type: "kubernetes" | "folder";
                /** Format: date-time */
                lastChangeAt?: string;
                outages: {
                    reason: string;
                    /** Format: date-time */
                    since: string;
                }[];
                problems: {
                    source: string;
                    message: string;
                }[];
            };
            limits: {
                version?: string;
                /** Format: date-time */
                since?: string;
                domains: number;
                limits: number;
            };
            /** @description Absent: the server does not read access policies. */
            policies?: {
                version?: string;
                /** Format: date-time */
                since?: string;
                namespaces: number;
                problem?: string;
            };
            heldDeletions: {
                /** @enum {unknown} */
                kind: "AccessPolicy" | "RateLimitConfig";
                reason: string;
                objects: number;
                command: string;
            }[];
            replicas: components["schemas"]["ReplicaClients"][];
        };
        Error: {
            /** @description Stable; docs/errors.md lists them. */
            code: string;
            message: string;
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
        /** @description The server failed to answer. Try again later. */
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
    getStatus: {
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
                    "application/json": components["schemas"]["Status"];
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
    listObjects: {
        parameters: {
            query?: {
                kind?: "AccessPolicy" | "RateLimitConfig";
                namespace?: string;
                /** @description Only those whose newest version is accepted, or is not. */
                accepted?: boolean;
                /** @description Only RateLimitConfigs of this domain. */
                domain?: string;
                /** @description Part of the name. */
                find?: string;
                /** @description Most items. */
                limit?: number;
                /** @description `next` of the page before. Absent: the first page. */
                cursor?: string;
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
                     *       "replica": "tollgate-xds-6c8d7f9b5-4k2lm",
                     *       "objects": [
                     *         {
                     *           "kind": "RateLimitConfig",
                     *           "namespace": "shop",
                     *           "name": "web",
                     *           "source": "kubernetes",
                     *           "generation": 3,
                     *           "accepted": true,
                     *           "inForce": 3,
                     *           "domain": "web",
                     *           "limits": 1,
                     *           "conditions": [
                     *             {
                     *               "type": "Accepted",
                     *               "status": "True",
                     *               "reason": "Accepted",
                     *               "message": "1 limit for domain 'web'"
                     *             }
                     *           ],
                     *           "clients": {
                     *             "limiters": {
                     *               "connected": 2,
                     *               "acknowledged": 2
                     *             },
                     *             "authServers": {
                     *               "connected": 2,
                     *               "acknowledged": 2
                     *             }
                     *           }
                     *         }
                     *       ],
                     *       "total": 1,
                     *       "counts": {
                     *         "AccessPolicy": {
                     *           "total": 1,
                     *           "refused": 0
                     *         },
                     *         "RateLimitConfig": {
                     *           "total": 1,
                     *           "refused": 0
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["ObjectList"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    getObject: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                kind: "AccessPolicy" | "RateLimitConfig";
                namespace: string;
                name: string;
            };
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
                     *       "replica": "tollgate-xds-6c8d7f9b5-4k2lm",
                     *       "kind": "RateLimitConfig",
                     *       "namespace": "shop",
                     *       "name": "web",
                     *       "source": "kubernetes",
                     *       "generation": 3,
                     *       "accepted": true,
                     *       "inForce": 3,
                     *       "domain": "web",
                     *       "limits": 1,
                     *       "conditions": [
                     *         {
                     *           "type": "Accepted",
                     *           "status": "True",
                     *           "reason": "Accepted",
                     *           "message": "1 limit for domain 'web'"
                     *         }
                     *       ],
                     *       "clients": {
                     *         "limiters": {
                     *           "connected": 2,
                     *           "acknowledged": 2
                     *         },
                     *         "authServers": {
                     *           "connected": 2,
                     *           "acknowledged": 2
                     *         }
                     *       },
                     *       "manifest": "apiVersion: ratelimit.tollgate.dev/v1alpha1\nkind: RateLimitConfig\nmetadata:\n  namespace: shop\n  name: web\nspec:\n  domain: web\n  descriptors:\n    - key: user\n      rateLimit:\n        unit: Minute\n        requestsPerUnit: 20\n",
                     *       "findings": [
                     *         {
                     *           "severity": "error",
                     *           "field": "spec.descriptors[0].rateLimit.requestsPerUnit",
                     *           "message": "1 limit for domain 'web'",
                     *           "line": 0,
                     *           "column": 0
                     *         }
                     *       ],
                     *       "versions": [
                     *         {
                     *           "generation": 3,
                     *           "readAt": "2026-01-01T09:30:00.000Z",
                     *           "accepted": true,
                     *           "inForce": true
                     *         }
                     *       ],
                     *       "acknowledgements": [
                     *         {
                     *           "clients": "limiter",
                     *           "resource": "web",
                     *           "connected": 2,
                     *           "acknowledged": 2,
                     *           "list": [
                     *             {
                     *               "node": "ratelimit-7d9f5b7c4-x2x9q",
                     *               "identity": "tollgate-limiter",
                     *               "address": "10.0.3.7:41988",
                     *               "acknowledged": true,
                     *               "version": "5f2c9a0d1e7b4836a1c0d2e4f6a8b0c2",
                     *               "wanted": "5f2c9a0d1e7b4836a1c0d2e4f6a8b0c2",
                     *               "acknowledgedAt": "2026-01-01T09:30:00.000Z",
                     *               "rejection": {
                     *                 "version": "5f2c9a0d1e7b4836a1c0d2e4f6a8b0c2",
                     *                 "at": "2026-01-01T09:30:00.000Z",
                     *                 "message": "1 limit for domain 'web'"
                     *               }
                     *             }
                     *           ]
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["ObjectDetail"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    getObjectVersion: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                kind: "AccessPolicy" | "RateLimitConfig";
                namespace: string;
                name: string;
                generation: number;
            };
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
                     *       "kind": "RateLimitConfig",
                     *       "namespace": "shop",
                     *       "name": "web",
                     *       "generation": 3,
                     *       "manifest": "apiVersion: ratelimit.tollgate.dev/v1alpha1\nkind: RateLimitConfig\nmetadata:\n  namespace: shop\n  name: web\nspec:\n  domain: web\n  descriptors:\n    - key: user\n      rateLimit:\n        unit: Minute\n        requestsPerUnit: 20\n"
                     *     }
                     */
                    "application/json": components["schemas"]["ObjectManifest"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    validateManifests: {
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
                 *       "manifests": "apiVersion: ratelimit.tollgate.dev/v1alpha1\nkind: RateLimitConfig\nmetadata:\n  namespace: shop\n  name: web\nspec:\n  domain: web\n  descriptors:\n    - key: user\n      rateLimit:\n        unit: Minute\n        requestsPerUnit: 20\n"
                 *     }
                 */
                "application/json": components["schemas"]["ValidationRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Validation"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
    listClients: {
        parameters: {
            query?: {
                kind?: "limiter" | "auth-server";
                state?: "current" | "behind" | "refusing";
                /** @description Part of the name. */
                find?: string;
                /** @description Most items. */
                limit?: number;
                /** @description `next` of the page before. Absent: the first page. */
                cursor?: string;
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
                     *       "replica": "tollgate-xds-6c8d7f9b5-4k2lm",
                     *       "clients": [
                     *         {
                     *           "kind": "limiter",
                     *           "node": "ratelimit-7d9f5b7c4-x2x9q",
                     *           "identity": "tollgate-limiter",
                     *           "address": "10.0.3.7:41988",
                     *           "protocol": "sotw",
                     *           "connectedAt": "2026-01-01T09:30:00.000Z",
                     *           "state": "current",
                     *           "version": "5f2c9a0d1e7b4836a1c0d2e4f6a8b0c2",
                     *           "acknowledgedAt": "2026-01-01T09:30:00.000Z",
                     *           "lagSeconds": 0,
                     *           "rejection": {
                     *             "version": "5f2c9a0d1e7b4836a1c0d2e4f6a8b0c2",
                     *             "at": "2026-01-01T09:30:00.000Z",
                     *             "message": "1 limit for domain 'web'"
                     *           }
                     *         }
                     *       ],
                     *       "total": 1,
                     *       "replicas": [
                     *         {
                     *           "replica": "tollgate-xds-6c8d7f9b5-4k2lm",
                     *           "limiters": {
                     *             "connected": 2,
                     *             "current": 2,
                     *             "refusing": 0
                     *           },
                     *           "authServers": {
                     *             "connected": 2,
                     *             "current": 2,
                     *             "refusing": 0
                     *           }
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["ClientList"];
                };
            };
            "4XX": components["responses"]["Refused"];
            "5XX": components["responses"]["Failed"];
        };
    };
}

import {
  type AuthClient,
  type ClientOptions,
  createAuthClient,
  createLimiterClient,
  createXdsClient,
  type LimiterClient,
  RequestError,
  type Result,
  unwrap,
  type XdsClient,
} from '@tollgate/admin-clients/clients';
import type { Settings } from '../config/settings.ts';
import { fetchAt, fetchByName } from './fetch-at.ts';
import type { Outage, Outages } from './outages.ts';
import { type Addresses, resolveReplicas } from './replicas.ts';
import { RequestTimer } from './request-timer.ts';

/** A service did not answer, or refused a request. */
export class ServiceError extends Error {
  readonly service: string;
  readonly url: string;
  /** Code of the service; `unreachable` without a response. */
  readonly code: string;
  readonly status: number | undefined;
  /** Set when there was no response. */
  readonly outage: Outage | undefined;

  constructor(error: RequestError, where: { service: string; url: string; outage: Outage | undefined }) {
    super(error.message, { cause: error });
    this.name = 'ServiceError';
    this.service = where.service;
    this.url = where.url;
    this.code = error.code;
    this.status = error.status;
    this.outage = where.outage;
  }
}

/** Sends a request by a client. */
export type Request<Client, T> = (client: Client) => Promise<Result<T>>;

/** The result of one replica. */
export interface ReplicaResult<T> {
  readonly url: string;
  readonly result:
    | { readonly ok: true; readonly value: T }
    | { readonly ok: false; readonly error: ServiceError };
}

interface SessionClientsOptions {
  readonly settings: Pick<
    Settings,
    'authUrl' | 'authReplicaUrls' | 'limiterUrls' | 'xdsUrl' | 'xdsToken' | 'requestTimeoutMs'
  >;
  readonly outages: Outages;
  /** The access token of the person, asked for before each request: it may have been refreshed. */
  readonly token: () => Promise<string>;
  /** Default: those of DNS. */
  readonly addresses?: Addresses;
}

/** The admin APIs of the services, with the access token of one person. */
export class SessionClients {
  readonly timer = new RequestTimer();
  readonly #options: SessionClientsOptions;

  constructor(options: SessionClientsOptions) {
    this.#options = options;
  }

  /** Sends a request to the auth server. @throws ServiceError */
  async auth<T>(request: Request<AuthClient, T>): Promise<T> {
    const { settings } = this.#options;
    const url = settings.authUrl;
    const token = await this.#options.token();
    const client = createAuthClient({
      ...{ url, token, timeoutMs: settings.requestTimeoutMs, fetch: fetchByName },
    });
    return this.#ask('The auth server', url, () => request(client));
  }

  /** Sends a request to the xDS server. @throws ServiceError */
  async xds<T>(request: Request<XdsClient, T>): Promise<T> {
    const { xdsUrl: url, xdsToken, requestTimeoutMs: timeoutMs } = this.#options.settings;
    const token = xdsToken || (await this.#options.token());
    const client = createXdsClient({ url, token, timeoutMs, fetch: fetchByName });
    return this.#ask('The xDS server', url, () => request(client));
  }

  /** Sends a request to every replica of the auth server. */
  async authServers<T>(request: Request<AuthClient, T>): Promise<readonly ReplicaResult<T>[]> {
    const { authUrl, authReplicaUrls } = this.#options.settings;
    const urls = authReplicaUrls.length > 0 ? authReplicaUrls : [authUrl];
    const token = await this.#options.token();
    return this.#askAll('The auth server', urls, (target) => request(createAuthClient({ ...target, token })));
  }

  /** Sends a request to every replica of the xDS server. */
  async xdsServers<T>(request: Request<XdsClient, T>): Promise<readonly ReplicaResult<T>[]> {
    const { xdsUrl, xdsToken } = this.#options.settings;
    const token = xdsToken || (await this.#options.token());
    return this.#askAll('The xDS server', [xdsUrl], (target) =>
      request(createXdsClient({ ...target, token })),
    );
  }

  /** Sends a request to every replica of the rate limit services. */
  async limiters<T>(request: Request<LimiterClient, T>): Promise<readonly ReplicaResult<T>[]> {
    const token = await this.#options.token();
    return this.#askAll('The rate limit service', this.#options.settings.limiterUrls, (target) =>
      request(createLimiterClient({ ...target, token })),
    );
  }

  async #askAll<T>(
    service: string,
    urls: readonly string[],
    send: (target: Omit<ClientOptions, 'token'>) => Promise<Result<T>>,
  ): Promise<readonly ReplicaResult<T>[]> {
    const { settings, addresses } = this.#options;
    const replicas = await resolveReplicas(urls, addresses);
    return Promise.all(
      replicas.map(async ({ url, requestUrl, address }) => {
        const target = {
          ...{ url: requestUrl, timeoutMs: settings.requestTimeoutMs },
          fetch: address === undefined ? fetchByName : fetchAt(address),
        };
        try {
          return { url, result: { ok: true, value: await this.#ask(service, url, () => send(target)) } };
        } catch (error) {
          if (error instanceof ServiceError) return { url, result: { ok: false, error } };
          throw error;
        }
      }),
    );
  }

  async #ask<T>(service: string, url: string, send: () => Promise<Result<T>>): Promise<T> {
    const { outages } = this.#options;
    try {
      const value = await this.timer.measure(unwrap(send()));
      outages.recordResponse(url);
      return value;
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      const outage = error.code === 'unreachable' ? outages.recordFailure(url, error.message) : undefined;
      if (outage === undefined) outages.recordResponse(url);
      throw new ServiceError(error, { service, url, outage });
    }
  }
}

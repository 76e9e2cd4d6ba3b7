import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import { readRequestBody } from '@tollgate/kit/body';
import { getErrorMessage } from '@tollgate/kit/errors';
import type { HttpApplication, HttpServerOptions } from '@tollgate/kit/http-server';
import { FailureLog } from '@tollgate/kit/logger';
import { monotonicNow, runInSlices, type Steps } from '@tollgate/kit/time';
import { reportHandshakes, type TlsMaterial, type WatchedTls } from '@tollgate/kit/tls';
import type { Preview } from '../catalog/preview.ts';
import type { ConfigObject } from '../catalog/source.ts';
import type { Context } from '../context.ts';
import type { AdmissionResult } from '../metrics.ts';
import { parseReview, toResponse } from './review.ts';

export const admissionPath = '/validate';

export interface AdmissionServerOptions {
  readonly tls: WatchedTls;
  /** Evaluates an object that is created or changed. */
  readonly preview: (object: ConfigObject) => Steps<Preview>;
  /** Default 1500: the API server waits for two seconds. */
  readonly deadlineMs?: number;
  readonly limits?: Partial<AdmissionLimits>;
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number;
}

interface AdmissionLimits {
  /** Bytes of a body: the new object of at most 3 MiB, the old one of 1.5 MiB, and metadata. */
  readonly maxBodyBytes: number;
  /** Bytes of all bodies that are being read or wait. */
  readonly maxTotalBytes: number;
  /** Requests that are being read or wait. */
  readonly maxRequests: number;
}

const defaultLimits: AdmissionLimits = {
  maxBodyBytes: 6 * 1024 * 1024,
  maxTotalBytes: 12 * 1024 * 1024,
  maxRequests: 64,
};

const defaultDeadlineMs = 1_500;

/** Longest time without yielding to streams and health checks. */
const sliceMs = 5;

/** The API server keeps idle connections for 90 seconds, and must be the one that closes them. */
const keepAliveTimeoutMs = 120_000;
const handshakeTimeoutMs = 5_000;
const requestTimeoutMs = 5_000;

/** Node looks for requests beyond their timeout at this interval. */
const checkIntervalMs = 1_000;

/** A request that gets no review: `failurePolicy` of the webhook decides. */
class Refusal extends Error {
  readonly result: Exclude<AdmissionResult, 'allowed' | 'denied'>;
  readonly status: number;

  constructor(result: Refusal['result'], status: number, message: string) {
    super(message);
    this.result = result;
    this.status = status;
  }
}

/**
 * The validating webhook. Reviews run one after the other, in slices, so that one that is parsed
 * and validated is all that is in memory besides the bodies, which are bounded in number and bytes.
 */
export class AdmissionServer implements HttpApplication {
  readonly server: Server;
  readonly #context: Pick<Context, 'logger' | 'metrics'>;
  readonly #options: AdmissionServerOptions;
  readonly #limits: AdmissionLimits;
  readonly #deadlineMs: number;
  readonly #now: () => number;
  readonly #failures: FailureLog;
  #requests = 0;
  #bytes = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(context: Pick<Context, 'logger' | 'metrics'>, options: AdmissionServerOptions) {
    const { tls, limits, deadlineMs = defaultDeadlineMs, now = monotonicNow } = options;
    this.#context = context;
    this.#options = options;
    this.#limits = { ...defaultLimits, ...limits };
    this.#deadlineMs = deadlineMs;
    this.#now = now;
    const { logger, metrics } = context;
    this.#failures = new FailureLog({ logger, message: 'admission request not reviewed', level: 'warn' });
    this.server = createServer(
      {
        ...toServerTls(tls.current()),
        handshakeTimeout: handshakeTimeoutMs,
        requestTimeout: requestTimeoutMs,
        headersTimeout: requestTimeoutMs,
        connectionsCheckingInterval: checkIntervalMs,
        keepAliveTimeout: keepAliveTimeoutMs,
      },
      (request, response) => void this.#serve(request, response),
    );
    tls.onChange((material) => this.server.setSecureContext(toServerTls(material)));
    const onFailure = metrics.tls.handshakeFailures('admission');
    reportHandshakes(this.server, { logger, listener: 'admission', onFailure });
  }

  async listen(options: HttpServerOptions): Promise<void> {
    this.server.setSecureContext(toServerTls(this.#options.tls.current()));
    this.server.listen(options);
    await once(this.server, 'listening');
  }

  async close(): Promise<void> {
    if (!this.server.listening) return;
    const closed = once(this.server, 'close');
    this.server.close();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const startedMs = this.#now();
    const { metrics } = this.#context;
    try {
      const { uid, preview } = await this.#admit(request, startedMs + this.#deadlineMs);
      const result = preview.problems.length === 0 ? 'allowed' : 'denied';
      metrics.admissionRequests.inc({ result });
      response.writeHead(200, { 'content-type': 'application/json' }).end(toResponse(uid, preview));
    } catch (error) {
      const { result, status, message } = toRefusal(error);
      metrics.admissionRequests.inc({ result });
      this.#failures.log(error, { result, peer: request.socket.remoteAddress });
      // The rest of a body that is not read.
      if (!request.complete) response.shouldKeepAlive = false;
      const headers = { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' };
      response.writeHead(status, headers).end(`${message}\n`);
    } finally {
      metrics.admissionSeconds.observe((this.#now() - startedMs) / 1_000);
    }
  }

  async #admit(request: IncomingMessage, deadlineMs: number): Promise<{ uid: string; preview: Preview }> {
    const bytes = this.#checkHead(request);
    this.#requests += 1;
    this.#bytes += bytes;
    try {
      const body = await readRequestBody(request, bytes, bodyTooLarge);
      return await this.#inTurn(async () => {
        if (this.#now() > deadlineMs) throw late();
        const { uid, object } = readReview(body);
        const steps = this.#untilDeadline(this.#options.preview(object), deadlineMs);
        return { uid, preview: await runInSlices(steps, { sliceMs }) };
      });
    } finally {
      this.#requests -= 1;
      this.#bytes -= bytes;
    }
  }

  /** Returns the length of the body. */
  #checkHead({ method, url = '', headers }: IncomingMessage): number {
    const { maxBodyBytes, maxTotalBytes, maxRequests } = this.#limits;
    if (url.split('?', 1)[0] !== admissionPath) throw new Refusal('malformed', 404, 'page not found');
    if (method !== 'POST') throw new Refusal('malformed', 405, 'the method must be POST');
    if (!/^application\/json *(;|$)/i.test(headers['content-type'] ?? ''))
      throw new Refusal('malformed', 415, 'the content type must be application/json');
    const bytes = Number(headers['content-length'] ?? Number.NaN);
    if (!Number.isSafeInteger(bytes)) throw new Refusal('malformed', 411, 'Content-Length is required');
    if (bytes > maxBodyBytes) throw bodyTooLarge();
    if (this.#requests >= maxRequests || this.#bytes + bytes > maxTotalBytes)
      throw new Refusal('overloaded', 503, 'too many requests at once, retry later');
    return bytes;
  }

  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(run);
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  *#untilDeadline<T>(steps: Steps<T>, deadlineMs: number): Steps<T> {
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      if (this.#now() > deadlineMs) throw late();
      yield;
    }
  }
}

/** The authorities of limiters are not those of the API server, which has no certificate for us. */
const toServerTls = ({ cert, key }: TlsMaterial) => ({ ...(cert && { cert }), ...(key && { key }) });

const bodyTooLarge = (): Error => new Refusal('malformed', 413, 'the body is too large');

const late = (): Error => new Refusal('late', 503, 'not validated in time, retry later');

function readReview(body: Buffer): ReturnType<typeof parseReview> {
  try {
    return parseReview(body.toString());
  } catch (cause) {
    throw new Refusal('malformed', 400, getErrorMessage(cause));
  }
}

/** Clients do not see the message of a bug. */
function toRefusal(error: unknown): Pick<Refusal, 'result' | 'status' | 'message'> {
  return error instanceof Refusal ? error : { result: 'failed', status: 500, message: 'internal error' };
}

import { type AppError, isAppError } from '@tollgate/kit/errors';
import type { JsonObject } from '@tollgate/kit/json';
import type { Logger } from '@tollgate/kit/logger';
import type { Millis } from '@tollgate/kit/time';
import type { Sql } from 'postgres';
import { Errors } from 'typebox/value';
import {
  type HookEndpoint,
  type HookName,
  type HookPayloads,
  type HookReply,
  hookDefinitions,
  hookNames,
  parseEndpoint,
  parseSecrets,
} from '../config/hook-definitions.ts';
import type { Settings } from '../config/settings.ts';
import { query } from '../db/connection.ts';
import { getCode } from '../db/failures.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { Randomness } from '../keys/secrets.ts';
import type { Metrics } from '../metrics.ts';
import { defaultHttpLimits, type HttpLimits, postHook, timeoutError } from './http.ts';

interface HookCallerOptions {
  readonly settings: Settings;
  /** The pool: a function runs in a transaction of its own. */
  readonly sql: Sql;
  readonly random: Randomness;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly nowMs: () => number;
  readonly httpLimits?: HttpLimits;
}

/** PostgreSQL enforces it. */
const functionTimeoutMs = 2_000;
const statementTimedOut = '57014';

/** Calls the hooks that the settings enable. */
export class HookCaller {
  /** A field, so that requests without a hook call no code of hooks. */
  readonly enabled: Pick<ReadonlySet<HookName>, 'has'>;
  readonly #options: HookCallerOptions;
  readonly #endpoints: ReadonlyMap<HookName, HookEndpoint>;

  constructor(options: HookCallerOptions) {
    const { settings, metrics } = options;
    this.#options = options;
    this.#endpoints = new Map(
      hookNames
        .filter((name) => settings[`hookEnabled:${name}`])
        .map((name) => [name, readEndpoint(settings, name)] as const),
    );
    this.enabled = this.#endpoints;
    for (const hook of this.#endpoints.keys())
      for (const result of ['ok', 'rejected', 'failed']) metrics.hookCalls.inc({ hook, result }, 0);
  }

  /**
   * Calls a hook; a no-op with an empty reply unless it is enabled. Must not be called in a
   * transaction, whose locks and connection would be held meanwhile.
   *
   * @throws AppError the error that the hook replied; `hook_…` or `unexpected_failure` if it failed
   */
  async call<Name extends HookName>(
    name: Name,
    payload: HookPayloads[Name],
    metadata: Pick<RequestMetadata, 'clientAddress' | 'requestId'>,
  ): Promise<HookReply> {
    const endpoint = this.#endpoints.get(name);
    if (endpoint === undefined) return {};
    const { metrics, logger } = this.#options;
    const log = logger.child({ hook: name, request_id: metadata.requestId });
    let reply: RawReply;
    try {
      reply = parseReply(await this.#send(endpoint, { name, payload, metadata }));
      if (!hasError(reply)) checkReply(name, reply);
    } catch (error) {
      metrics.hookCalls.inc({ hook: name, result: 'failed' });
      log.error({ err: error }, 'hook failed');
      throw isAppError(error) ? error : errors.unexpected_failure({ cause: error });
    }
    metrics.hookCalls.inc({ hook: name, result: hasError(reply) ? 'rejected' : 'ok' });
    if (!hasError(reply)) return reply;
    const rejection = toRejection(reply.error);
    log.info({ status: rejection.httpStatus }, 'hook rejected the request');
    throw rejection;
  }

  #send(
    endpoint: HookEndpoint,
    {
      name,
      payload,
      metadata,
    }: {
      readonly name: HookName;
      readonly payload: HookPayloads[HookName];
      readonly metadata: Pick<RequestMetadata, 'clientAddress'>;
    },
  ): Promise<string> {
    const { sql, random, nowMs, httpLimits = defaultHttpLimits } = this.#options;
    const id = random.uuid();
    const event = {
      metadata: {
        uuid: id,
        time: new Date(nowMs()).toISOString(),
        name: hookDefinitions[name].event,
        ...(metadata.clientAddress !== '' && { ip_address: metadata.clientAddress }),
      },
      ...payload,
    };
    return endpoint.kind === 'postgres'
      ? callFunction(sql, endpoint.call, event)
      : postHook(endpoint, { id, body: JSON.stringify(event), nowMs }, httpLimits);
  }
}

/** The settings have been checked. */
function readEndpoint(settings: Settings, name: HookName): HookEndpoint {
  const secrets = parseSecrets(settings[`hookSecrets:${name}`]);
  const endpoint = parseEndpoint(settings[`hookUri:${name}`], secrets.ok ? secrets.value : []);
  if (!endpoint.ok) throw new TypeError(`invalid URI of the hook ${name}`);
  return endpoint.value;
}

async function callFunction(
  sql: Sql,
  call: string,
  event: JsonObject,
  timeoutMs: Millis = functionTimeoutMs,
): Promise<string> {
  return sql.begin(async (transaction) => {
    await query(transaction, `set local statement_timeout = ${timeoutMs}`, []);
    const rows = await query(transaction, `select ${call}($1::jsonb)::text as reply`, [event]).catch(
      (error: unknown) => {
        if (getCode(error) !== statementTimedOut) throw error;
        throw errors.unexpected_failure({ message: timeoutError(timeoutMs).message, cause: error });
      },
    );
    const reply = rows[0]?.reply;
    return typeof reply === 'string' ? reply : '';
  });
}

/** An unvalidated reply. */
type RawReply = HookReply & { readonly error?: unknown };

function parseReply(text: string): RawReply {
  if (text.trim() === '') return {};
  try {
    const reply: unknown = JSON.parse(text);
    if (reply === null) return {};
    if (typeof reply === 'object' && !Array.isArray(reply)) return reply;
  } catch {
    // Reported below.
  }
  throw errors.unexpected_failure({ message: 'Error unmarshaling JSON output.' });
}

/** An error without message rejects the request, too. */
function hasError({ error }: RawReply): boolean {
  return error !== undefined && error !== null;
}

function toRejection(error: unknown): AppError {
  // Parsed boundary: both members are unknown.
  const { http_code, message } = (typeof error === 'object' ? error : { message: error }) as {
    readonly http_code?: unknown;
    readonly message?: unknown;
  };
  const status = Number(http_code);
  const httpStatus = Number.isInteger(status) && status >= 400 && status <= 599 ? status : 500;
  const shown = typeof message === 'string' && message !== '' ? { message } : {};
  return httpStatus >= 500
    ? errors.unexpected_failure({ ...shown, httpStatus })
    : errors.unknown({ ...shown, httpStatus });
}

function checkReply(name: HookName, reply: RawReply): void {
  if (name === 'CUSTOM_ACCESS_TOKEN' && reply.claims === undefined)
    throw errors.unexpected_failure({ message: 'output claims field is missing' });
  const problems = Errors(hookDefinitions[name].reply, reply).map(
    ({ instancePath, message }) => `- ${instancePath.slice(1).replaceAll('/', '.')}: ${message}`,
  );
  if (problems.length === 0) return;
  const what = name === 'CUSTOM_ACCESS_TOKEN' ? 'output claims do' : 'output does';
  throw errors.unexpected_failure({
    message: `${what} not conform to the expected schema: \n${problems.join('\n')}\n`,
  });
}

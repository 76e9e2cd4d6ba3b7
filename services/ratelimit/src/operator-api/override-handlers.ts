import { formatDescriptor } from '@tollgate/rules/descriptor-text';
import { getAlgorithm } from '../algorithms/registry.ts';
import { windowKeyPrefix } from '../decision/counter-key.ts';
import { type Limit, withRequests } from '../decision/find-limit.ts';
import { type Override, type Overrides, toName, toPublic } from '../decision/overrides.ts';
import { findRequestLimits } from '../decision/peek.ts';
import type { RateLimitRequest } from '../decision/wire/request.ts';
import { errors } from '../errors.ts';
import { jsonReply } from '../http/router.ts';
import { makeChange } from './audit.ts';
import type { CounterContext } from './counters.ts';
import { selectDomain, selectPage } from './limit-list.ts';
import { type Caller, type Handlers, operations } from './operations.ts';
import {
  type Fields,
  parseDescriptorRequest,
  parseListQuery,
  readNumber,
  readText,
  splitBody,
} from './requests.ts';

/** A change that lasts longer belongs into the rules. */
const maxTtlSeconds = 31 * 24 * 60 * 60;

/** Rules have the same bound. */
const maxRequests = 2 ** 32 - 1;

interface OverrideContext extends CounterContext {
  readonly overrides: Overrides;
  readonly nowMs: () => number;
}

export function overrideHandlers(
  context: OverrideContext,
): Handlers<'listOverrides' | 'setOverride' | 'removeOverride'> {
  const { overrides } = context;
  return {
    async listOverrides({ url }) {
      const { domain, ...query } = parseListQuery(url, operations.listOverrides.list);
      const all = selectDomain(overrides.list(), domain);
      const named = all.map((override) => ({ override, name: toListName(override) }));
      const { page, ...next } = selectPage(named, ({ name }) => name, query);
      return jsonReply({ overrides: page.map(({ override }) => toPublic(override)), ...next });
    },
    async setOverride({ body }, caller) {
      const override = parseOverride(context, body, caller.caller);
      await makeOverrideChange(context, override, {
        caller,
        line: { action: 'override', ...toPublic(override) },
        make: () => overrides.set(override),
      });
      return jsonReply(toPublic(override));
    },
    async removeOverride({ body }, caller) {
      const request = parseDescriptorRequest(body);
      // The rule may be gone, and with it what it made of the entries.
      const entries = findLimit(context, request)?.keyEntries ?? request.descriptors[0]?.entries ?? [];
      const target = { domain: request.domain, entries: entries.map(({ key, value }) => ({ key, value })) };
      await makeOverrideChange(context, target, {
        caller,
        line: { action: 'remove override', ...target },
        make: () => overrides.remove(target.domain, target.entries),
      });
      return jsonReply(target);
    },
  };
}

/** Lists are in its order, and are searched in it. */
function toListName({ domain, entries }: Override): string {
  return `${domain} ${formatDescriptor(entries)}`;
}

/** @throws AppError with the reason. */
function parseOverride(context: OverrideContext, body: Buffer, setBy: string): Override {
  const names = ['requestsPerUnit', 'burst', 'ttlSeconds', 'reason'];
  const { rest, fields } = splitBody(body, names);
  const request = parseDescriptorRequest(rest);
  const limit = findLimit(context, request);
  if (limit === undefined) throw errors.descriptor_not_limited();
  const requestsPerUnit = readNumber(fields, 'requestsPerUnit', { max: maxRequests });
  const burst = parseBurst(fields, limit, requestsPerUnit);
  return {
    domain: request.domain,
    entries: limit.keyEntries.map(({ key, value }) => ({ key, value })),
    requestsPerUnit,
    ...(burst !== undefined && { burst }),
    untilMs: context.nowMs() + readNumber(fields, 'ttlSeconds', { min: 1, max: maxTtlSeconds }) * 1000,
    reason: readText(fields, 'reason', 200),
    setBy,
  };
}

/**
 * Undefined where the rule has no token bucket. As in rules, a bucket without space is refused.
 *
 * @throws AppError with the reason.
 */
function parseBurst(fields: Fields, { rule }: Limit, requestsPerUnit: number): number | undefined {
  const { rate } = rule;
  const isGiven = 'burst' in fields;
  if (rate === undefined || !getAlgorithm(rate).hasBurst) {
    if (!isGiven) return undefined;
    throw errors.malformed_request({ message: 'burst is for token buckets, and the rule has none' });
  }
  if (!isGiven) return withRequests(rate, requestsPerUnit).burst;
  if (requestsPerUnit === 0) {
    const message = 'burst has no effect when requestsPerUnit is 0: remove it';
    throw errors.malformed_request({ message });
  }
  return readNumber(fields, 'burst', { min: 1, max: maxRequests });
}

/** The limit of the only descriptor. */
function findLimit({ decisions }: OverrideContext, request: RateLimitRequest): Limit | undefined {
  const [limit] = findRequestLimits(decisions, request);
  return limit?.kind === 'limited' ? limit : undefined;
}

interface OverrideChange {
  readonly caller: Caller;
  readonly line: Readonly<Record<string, unknown>>;
  readonly make: () => Promise<void>;
}

/** Counters that were over one limit may be within the other; only windows are in caches. */
function makeOverrideChange(
  context: OverrideContext,
  { domain, entries }: Pick<Override, 'domain' | 'entries'>,
  { caller, line, make }: OverrideChange,
): Promise<void> {
  const prefix = windowKeyPrefix(context.decisions.options, domain, entries);
  const announcement = { prefix, overrides: [toName(domain, entries)] };
  return makeChange(context, { caller, describe: () => line, announcement, make });
}

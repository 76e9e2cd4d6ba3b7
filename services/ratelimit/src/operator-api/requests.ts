import type { AppError } from '@tollgate/kit/errors';
import { getErrorMessage } from '@tollgate/kit/errors';
import type { Entry } from '@tollgate/rules/match';
import {
  invalidRequest,
  parseJsonRequest,
  type RateLimitRequest,
  validateRequest,
} from '../decision/wire/request.ts';
import { errors } from '../errors.ts';
import type { ListOptions } from './operations.ts';

/** Each descriptor may be compared with many rules. */
const maxDescriptors = 100;

/**
 * Parses a RateLimitRequest in proto3 JSON.
 *
 * @throws AppError with the reason.
 */
export function parseRequest(body: Buffer): RateLimitRequest {
  const request = parseJsonRequest(body);
  const problem = validateRequest(request);
  if (problem !== undefined) throw invalidRequest(problem);
  checkDescriptors(request.descriptors.length);
  return request;
}

function checkDescriptors(count: number): void {
  if (count > maxDescriptors)
    throw errors.too_many_descriptors({
      message: `at most ${maxDescriptors} descriptors are possible at once`,
    });
}

/** Parses several requests, which have the bound of one. @throws AppError with the reason. */
export function parseRequests(body: Buffer): readonly RateLimitRequest[] {
  const { requests, ...others } = parseObject(body);
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw malformed(`unknown field '${unknown}' beside requests`);
  if (!Array.isArray(requests)) throw malformed('requests is a list of objects with domain and descriptors');
  checkDescriptors(requests.length);
  const parsed = requests.map((request) => parseRequest(Buffer.from(JSON.stringify(request))));
  checkDescriptors(parsed.reduce((sum, { descriptors }) => sum + descriptors.length, 0));
  return parsed;
}

export type Fields = Readonly<Record<string, unknown>>;

/** @throws AppError when the body is not an object in JSON. */
export function parseObject(body: Buffer): Fields {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch (cause) {
    throw malformed(`it is not JSON: ${getErrorMessage(cause)}`);
  }
  if (!isObject(value)) throw malformed('it is not a JSON object');
  return value;
}

/**
 * Separates fields of the counter API from those of a RateLimitRequest.
 *
 * @throws AppError when the body is not an object in JSON.
 */
export function splitBody(
  body: Buffer,
  names: readonly string[],
): { readonly rest: Buffer; readonly fields: Fields } {
  const all = Object.entries(parseObject(body));
  const rest = Object.fromEntries(all.filter(([name]) => !names.includes(name)));
  const fields = Object.fromEntries(all.filter(([name]) => names.includes(name)));
  return { rest: Buffer.from(JSON.stringify(rest)), fields };
}

/** @throws AppError when it has not exactly one descriptor. */
export function parseDescriptorRequest(body: Buffer): RateLimitRequest {
  const request = parseRequest(body);
  if (request.descriptors.length !== 1) throw malformed('exactly one descriptor is possible');
  return request;
}

interface NumberField {
  readonly min?: number;
  readonly max: number;
  readonly byDefault?: number;
}

/** @throws AppError when the field is not a whole number in its range. */
export function readNumber(fields: Fields, name: string, { min = 0, max, byDefault }: NumberField): number {
  const value = fields[name] ?? byDefault;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max) return value;
  throw malformed(`${name} is a whole number from ${min} to ${max}`);
}

/** @throws AppError when the field is not a text of 1 to `maxChars` characters. */
export function readText(fields: Fields, name: string, maxChars: number): string {
  const value = fields[name];
  if (typeof value === 'string' && value.trim() !== '' && value.length <= maxChars) return value;
  throw malformed(`${name} is a text of 1 to ${maxChars} characters`);
}

/** Entries that are the first ones of a descriptor; the last one may be without a value. */
interface Prefix {
  readonly domain: string;
  readonly entries: readonly Entry[];
  readonly lastKey?: string;
}

/** @throws AppError with the reason. */
export function parsePrefix({ domain, prefix, ...others }: Fields): Prefix {
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw malformed(`unknown field '${unknown}' beside domain and prefix`);
  if (typeof domain !== 'string' || domain === '') throw errors.empty_domain();
  if (!Array.isArray(prefix)) throw malformed('prefix is a list of entries, [] for the whole domain');
  const entries: Entry[] = [];
  for (const [index, entry] of prefix.entries()) {
    const { key, value }: Fields = isObject(entry) ? entry : {};
    if (typeof key !== 'string' || key === '')
      throw malformed(`prefix[${index}].key is a text that is not empty`);
    if (typeof value === 'string') entries.push({ key, value });
    else if (value === undefined && index === prefix.length - 1) return { domain, entries, lastKey: key };
    else throw malformed(`prefix[${index}].value is a text; only the last entry may be without one`);
  }
  return { domain, entries };
}

interface ListQuery {
  /** All of them when absent. */
  readonly domain: string | undefined;
  readonly limit: number;
  /** Only of lists with pages. */
  readonly search: string | undefined;
  readonly after: string | undefined;
}

/** Parses the query of a list. @throws AppError with the reason. */
export function parseListQuery(url: string, { byDefault, max, hasPages }: ListOptions): ListQuery {
  const { searchParams } = new URL(url, 'http://localhost');
  const known = ['domain', 'limit', ...(hasPages === true ? ['search', 'after'] : [])];
  const unknown = [...searchParams.keys()].find((name) => !known.includes(name));
  if (unknown !== undefined) throw malformed(`unknown parameter '${unknown}': expected ${known.join(', ')}`);
  const text = searchParams.get('limit') ?? String(byDefault);
  const limit = Number(text);
  if (!/^\d+$/.test(text) || limit < 1 || limit > max) throw malformed(`limit is a number from 1 to ${max}`);
  const read = (name: string) => searchParams.get(name) ?? undefined;
  return { domain: read('domain'), limit, search: read('search'), after: read('after') };
}

function malformed(problem: string): AppError {
  return errors.malformed_request({ message: `the request is invalid: ${problem}` });
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

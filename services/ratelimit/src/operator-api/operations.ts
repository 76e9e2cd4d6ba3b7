import type { AdminRight } from '../config/admin-tokens.ts';
import { maxOverrides } from '../decision/overrides.ts';
import type { HttpReply, HttpRequest } from '../http/router.ts';
import type { SchemaName } from './schemas.ts';

/** Who sent a request, for the audit lines. */
export interface Caller {
  /** The name of the person, key or token, else that in the client certificate, else `token`. */
  readonly caller: string;
  /** Absent unless the auth server knows the caller: a key may be named like a person. */
  readonly callerKind?: string;
  /** The id of the user or API key at the auth server. */
  readonly callerId?: string;
  readonly address: string | undefined;
}

export interface ListOptions {
  /** Length without `limit`. */
  readonly byDefault: number;
  readonly max: number;
  readonly hasPages?: true;
}

/** A request of the counter API, as the server accepts it and the OpenAPI document describes it. */
interface Operation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  /** The right that callers need. */
  readonly right: AdminRight;
  readonly summary: string;
  /** A list. Its query has `domain` and `limit`, and with pages `search` and `after`. */
  readonly list?: ListOptions;
  readonly request?: SchemaName;
  readonly response: SchemaName;
}

/** All requests, by their `operationId`. */
export const operations = {
  listOverrides: {
    method: 'GET',
    path: '/v1/overrides',
    right: 'read',
    summary: 'List the overrides in force',
    list: { byDefault: 1_000, max: maxOverrides, hasPages: true },
    response: 'OverrideList',
  },
  setOverride: {
    method: 'PUT',
    path: '/v1/overrides',
    right: 'write',
    summary: 'Set another limit for one descriptor, for a time',
    request: 'OverrideRequest',
    response: 'Override',
  },
  removeOverride: {
    method: 'DELETE',
    path: '/v1/overrides',
    right: 'write',
    summary: 'End the override of a descriptor',
    request: 'RateLimitRequest',
    response: 'Counted',
  },
  peekCounters: {
    method: 'POST',
    path: '/v1/counters/peek',
    right: 'read',
    summary: 'Get the limits of descriptors and the state of their counters. Counts nothing',
    request: 'RateLimitRequest',
    response: 'Peek',
  },
  peekDomains: {
    method: 'POST',
    path: '/v1/counters/peek/domains',
    right: 'read',
    summary: 'Peek into the counters of several domains. At most 100 descriptors in all',
    request: 'PeekListRequest',
    response: 'PeekList',
  },
  resetCounters: {
    method: 'POST',
    path: '/v1/counters/reset',
    right: 'write',
    summary: 'Reset the counters of descriptors, or all that begin with a prefix',
    request: 'ResetRequest',
    response: 'Reset',
  },
  reserveHits: {
    method: 'POST',
    path: '/v1/reservations',
    right: 'reserve',
    summary: 'Reserve an estimate of hits. 429 with `Retry-After` if they do not fit',
    request: 'ReservationRequest',
    response: 'Reservation',
  },
  commitReservation: {
    method: 'POST',
    path: '/v1/reservations/commit',
    right: 'reserve',
    summary: 'Replace the estimate of a reservation by the real number of hits',
    request: 'CommitRequest',
    response: 'Commit',
  },
  listTopKeys: {
    method: 'GET',
    path: '/v1/top',
    right: 'read',
    summary: 'List the descriptors with the most hits in the last one to two minutes, of this replica',
    list: { byDefault: 20, max: 1_000 },
    response: 'TopKeys',
  },
  listKeysOfHour: {
    method: 'GET',
    path: '/v1/keys',
    right: 'read',
    summary: 'List the descriptors with the most hits in the last hour by minute, of this replica',
    list: { byDefault: 100, max: 1_000 },
    response: 'KeysOfHour',
  },
  listRefusals: {
    method: 'GET',
    path: '/v1/refusals',
    right: 'read',
    summary: 'List the last descriptors that were over their limit, newest first, of this replica',
    list: { byDefault: 100, max: 1_000 },
    response: 'RefusalList',
  },
  listDomains: {
    method: 'GET',
    path: '/v1/domains',
    right: 'read',
    summary: 'List the domains of the rules in force, with the hits of this replica since its start',
    list: { byDefault: 100, max: 1_000, hasPages: true },
    response: 'DomainList',
  },
  listLimits: {
    method: 'GET',
    path: '/v1/limits',
    right: 'read',
    summary: 'List the limits in force, with the hits of this replica since its start',
    list: { byDefault: 100, max: 1_000, hasPages: true },
    response: 'LimitList',
  },
  getTrial: {
    method: 'GET',
    path: '/v1/trial',
    right: 'read',
    summary: 'Compare the rules on trial with those in force, by the requests of this replica',
    list: { byDefault: 100, max: 1_000 },
    response: 'Trial',
  },
  getSettings: {
    method: 'GET',
    path: '/v1/settings',
    right: 'settings',
    summary: 'Get the settings in force, without secrets, and the warnings of the start',
    response: 'ServiceSettings',
  },
} as const satisfies Record<string, Operation>;

export type OperationId = keyof typeof operations;

/** Functions that answer the operations. They throw AppErrors. */
export type Handlers<Id extends OperationId = OperationId> = Readonly<
  Record<Id, (request: HttpRequest, caller: Caller) => Promise<HttpReply>>
>;

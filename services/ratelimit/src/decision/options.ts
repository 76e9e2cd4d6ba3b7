import { Windows } from '@tollgate/rules/windows';
import type { Settings } from '../config/settings.ts';
import type { HeaderNames } from './wire/headers.ts';

export interface DecisionOptions {
  readonly cacheKeyPrefix: string;
  /** CACHE_KEY_ESCAPE: keys of fixed windows are unambiguous, as those of the others always are. */
  readonly cacheKeyEscape: boolean;
  readonly nearLimitRatio: number;
  readonly expirationJitterMaxSeconds: number;
  readonly shadowMode: boolean;
  readonly quotaMode: boolean;
  /** Absent when LIMIT_RESPONSE_HEADERS_ENABLED is false. */
  readonly headerNames?: HeaderNames | undefined;
  /** LIMIT_STANDARD_HEADERS_ENABLED. */
  readonly standardHeaders: boolean;
  readonly responseDynamicMetadata: boolean;
  /** Windows of the unit `month`, with USE_CALENDAR_MONTH_RATE_LIMIT. */
  readonly calendarMonths?: Windows | undefined;
}

/** Options that add nothing to keys, expirations or responses, for decisions without a service. */
export const plainDecisionOptions: DecisionOptions = {
  cacheKeyPrefix: '',
  cacheKeyEscape: false,
  nearLimitRatio: 0.8,
  expirationJitterMaxSeconds: 0,
  shadowMode: false,
  quotaMode: false,
  standardHeaders: false,
  responseDynamicMetadata: false,
};

/** The settings that decisions read, in an object that is small enough to be fast. */
export function getDecisionOptions(settings: Settings): DecisionOptions {
  return {
    cacheKeyPrefix: settings.cacheKeyPrefix,
    cacheKeyEscape: settings.cacheKeyEscape,
    nearLimitRatio: settings.nearLimitRatio,
    expirationJitterMaxSeconds: settings.expirationJitterMaxSeconds,
    shadowMode: settings.shadowMode,
    quotaMode: settings.quotaMode,
    headerNames: settings.responseHeadersEnabled
      ? { limit: settings.limitHeader, remaining: settings.remainingHeader, reset: settings.resetHeader }
      : undefined,
    standardHeaders: settings.standardHeadersEnabled,
    responseDynamicMetadata: settings.responseDynamicMetadata,
    calendarMonths: settings.useCalendarMonths ? Windows.ofUtcMonths() : undefined,
  };
}

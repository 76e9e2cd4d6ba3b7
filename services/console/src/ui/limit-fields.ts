import { type Html, html } from '@tollgate/kit/html';
import { errors } from '../errors.ts';
import { field } from './fields.ts';
import { readText } from './form.ts';

/** The limit of one caller, as in the `limit` claim. */
type Limit = { readonly requests_per_unit: number; readonly unit: string };

/** The number of a limit is a uint32, as in Envoy's RateLimitOverride. */
const maxRequests = 4_294_967_295;

/** Units of the `limit` claim. */
const units = {
  second: 'per second',
  minute: 'per minute',
  hour: 'per hour',
  day: 'per day',
  week: 'per week',
  month: 'per month',
  year: 'per year',
};

/** Fields of the plan and limit of a caller, such as `this user`. */
export function planFields(
  caller: string,
  { plan, limit }: { readonly plan?: string | null | undefined; readonly limit?: Limit | null | undefined },
): Html {
  return html`${field({
    name: 'plan',
    label: 'Plan',
    value: plan ?? '',
    hint: 'Empty: the default plan.',
  })}${field({
    name: 'requests',
    label: `Limit of ${caller}, in requests`,
    type: 'number',
    value: limit ? String(limit.requests_per_unit) : '',
    hint: 'Empty: the limit of the plan.',
  })}${field({ name: 'unit', label: 'Unit', value: limit?.unit.toLowerCase() ?? 'minute', choices: units })}`;
}

/** Reads the fields. Empty ones are left out. @throws AppError `invalid_value` */
export function readPlan(form: URLSearchParams): {
  readonly plan?: string;
  readonly limit?: Limit;
} {
  const name = readText(form, 'plan');
  const plan = name === '' ? {} : { plan: name };
  const text = readText(form, 'requests');
  if (text === '') return plan;
  const requests = Number(text);
  if (!Number.isInteger(requests) || requests < 1 || requests > maxRequests)
    throw errors.invalid_value({
      message: `The limit is a whole number of requests from 1 to ${maxRequests}. Nothing was changed.`,
    });
  const unit = readText(form, 'unit');
  if (!Object.hasOwn(units, unit)) throw errors.invalid_value();
  return { ...plan, limit: { requests_per_unit: requests, unit } };
}

/** `50 per hour`; undefined without a limit. */
export function limitText(limit: Limit | null | undefined): string | undefined {
  return limit ? `${limit.requests_per_unit.toLocaleString('en')} per ${limit.unit}` : undefined;
}

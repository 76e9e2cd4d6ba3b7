import { parseDuration } from '@tollgate/kit/time';
import { formatDescriptor } from '@tollgate/rules/descriptor-text';
import { errors } from '../../errors.ts';
import type { Visit } from '../../http/visit.ts';
import { readText } from '../../ui/form.ts';
import { toBody } from './counter.ts';
import { counterPath, type DomainDescriptor, readDescriptor } from './descriptor.ts';
import { changeLimiters } from './replicas.ts';

function readTarget(form: URLSearchParams): DomainDescriptor {
  return readDescriptor(readText(form, 'domain'), readText(form, 'descriptor'));
}

export async function resetCounter(visit: Visit, form: URLSearchParams): Promise<string> {
  const target = readTarget(form);
  await changeLimiters(visit, (client) => client.POST('/v1/counters/reset', { body: toBody(target) }));
  visit.notify(`The counter of ${formatDescriptor(target.entries)} starts again at 0.`);
  return counterPath(target);
}

export async function setOverride(visit: Visit, form: URLSearchParams): Promise<string> {
  const target = readTarget(form);
  const burst = readText(form, 'burst');
  const duration = readText(form, 'duration');
  const body = {
    ...toBody(target),
    requestsPerUnit: readCount(readText(form, 'requestsPerUnit'), 'The limit'),
    ...(burst !== '' && { burst: readCount(burst, 'The burst') }),
    ttlSeconds: readSeconds(duration),
    reason: readText(form, 'reason'),
  };
  await changeLimiters(visit, (client) => client.PUT('/v1/overrides', { body }));
  visit.notify(`${formatDescriptor(target.entries)} has the limit ${body.requestsPerUnit} for ${duration}.`);
  return counterPath(target);
}

export async function endOverride(visit: Visit, form: URLSearchParams): Promise<string> {
  const target = readTarget(form);
  await changeLimiters(visit, (client) => client.DELETE('/v1/overrides', { body: toBody(target) }));
  visit.notify(
    `The override of ${formatDescriptor(target.entries)} has ended: the limit of the rule applies.`,
  );
  return counterPath(target);
}

/** @throws AppError `invalid_value` */
function readCount(text: string, name: string): number {
  if (!/^\d{1,10}$/.test(text)) throw errors.invalid_value({ message: `${name} must be a whole number.` });
  return Number(text);
}

/** @throws AppError `invalid_value` */
function readSeconds(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined || ms < 1000)
    throw errors.invalid_value({
      message: 'The time must be a duration of at least 1s, such as 30m or 48h.',
    });
  return Math.round(ms / 1000);
}

import { type Html, html } from '@tollgate/kit/html';
import { formatDescriptor, parseDescriptor } from '@tollgate/rules/descriptor-text';
import { errors } from '../../errors.ts';
import type { Schemas } from './replicas.ts';

type Entry = Schemas['Entry'];

/** A descriptor of a domain. */
export interface DomainDescriptor {
  readonly domain: string;
  readonly entries: readonly Entry[];
}

/** @throws AppError `invalid_value` */
export function readDescriptor(domain: string, text: string): DomainDescriptor {
  if (domain === '') throw errors.invalid_value({ message: 'The domain is missing.' });
  const parsed = parseDescriptor(text.trim());
  if (!parsed.ok) throw errors.invalid_value({ message: `Invalid descriptor: ${parsed.problem}` });
  return { domain, entries: parsed.entries.map(({ key, value }) => ({ key, value })) };
}

/** Path of the page of a counter, or of an action on it. */
export function counterPath({ domain, entries }: DomainDescriptor, path = '/limits/counter'): string {
  return `${path}?${new URLSearchParams({ domain, descriptor: formatDescriptor(entries) })}`;
}

/** Limiters keep 100 characters of a text, and mark a longer one. */
const cutLength = 101;

/** Whether limiters have cut a text, so that no counter has these entries. */
export function isCut({ domain, entries }: DomainDescriptor): boolean {
  return [domain, ...entries.flatMap(({ key, value }) => [key, value])].some(
    (text) => text.length === cutLength && text.endsWith('…'),
  );
}

/** A descriptor that leads to its counter. */
export function descriptorLink(descriptor: DomainDescriptor): Html {
  const entries = formatDescriptor(descriptor.entries).split(/(?<=,)/);
  const text = html`<code class="key">${entries.map((entry) => html`${entry}<wbr>`)}</code>`;
  return isCut(descriptor) ? text : html`<a href="${counterPath(descriptor)}">${text}</a>`;
}

/** Tells a descriptor apart from all others. */
export function descriptorName({ domain, entries }: DomainDescriptor): string {
  return `${domain}\0${formatDescriptor(entries)}`;
}

/** Identifies a row. */
export function descriptorId(kind: string, descriptor: DomainDescriptor): string {
  return `${kind}-${Buffer.from(descriptorName(descriptor)).toString('base64url')}`;
}

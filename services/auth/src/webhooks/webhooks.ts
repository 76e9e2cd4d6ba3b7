import { getErrorMessage } from '@tollgate/kit/errors';
import type { JsonObject } from '@tollgate/kit/json';
import { maskPath } from '@tollgate/kit/text';
import { parseDuration } from '@tollgate/kit/time';
import { type AuditAction, eventTypes } from '../audit/actions.ts';
import { auditEntry } from '../audit/audit-log.ts';
import { describeChanges } from '../audit/changes.ts';
import { errors } from '../errors.ts';
import { findUrlProblem } from '../outbound/fetch.ts';
import type { AdminRequest } from '../sessions/admin-request.ts';
import { postEvent, type WebhooksContext } from './deliveries.ts';
import { maxWebhooks, type StoredWebhook, signingSecrets } from './webhook-store.ts';

/** An endpoint as sent by an administrator. Absent values stay as they are. */
export interface WebhookInput {
  readonly name?: string | undefined;
  readonly url?: string | undefined;
  readonly event_types?: readonly string[] | undefined;
  readonly disabled?: boolean | undefined;
}

/** The name is a label of metrics. */
const nameForm = /^[a-z0-9][a-z0-9-]{0,39}$/;
const maxUrlChars = 2_048;
const secretBytes = 32;
const maxGraceMs = 7 * 24 * 3_600_000;
const maxErrorChars = 500;

/** @throws AppError `validation_failed`, `conflict`. */
export async function createWebhook(
  context: WebhooksContext,
  input: WebhookInput,
  request: AdminRequest,
): Promise<StoredWebhook> {
  const { store, random } = context;
  const at = new Date(request.metadata.nowMs);
  const webhook: StoredWebhook = {
    id: random.uuid(),
    name: input.name ?? '',
    url: input.url ?? '',
    secret: newSecret(context),
    previous_secret: '',
    previous_secret_until: null,
    event_types: input.event_types ?? [],
    disabled: input.disabled ?? false,
    created_at: at,
    updated_at: at,
    last_delivered_at: null,
    last_failed_at: null,
    last_error: '',
  };
  await check(context, webhook);
  const audit = webhookEntry('webhook_created', webhook, request, {
    webhook_url: maskPath(webhook.url),
  });
  const result = await store.webhooks.insert(webhook, audit);
  if (result === 'full') throw invalid(`at most ${maxWebhooks} webhooks are possible`);
  if (result === 'taken') throw nameTaken(webhook);
  return webhook;
}

/** @throws AppError `not_found`, `validation_failed`, `conflict`. */
export async function updateWebhook(
  context: WebhooksContext,
  id: string,
  { input, request }: { readonly input: WebhookInput; readonly request: AdminRequest },
): Promise<StoredWebhook> {
  const before = await getWebhook(context, id);
  const { name = before.name, url = before.url, disabled = before.disabled } = input;
  const changed = { name, url, disabled, event_types: input.event_types ?? before.event_types };
  const webhook = { ...before, ...changed, updated_at: new Date(request.metadata.nowMs) };
  await check(context, webhook);
  const { changed: names, changes } = describeChanges(
    (['name', 'url', 'disabled', 'event_types'] as const).map((field) => ({
      name: field,
      before: before[field],
      after: changed[field],
    })),
  );
  const origins = { old: maskPath(before.url), new: maskPath(url) };
  const traits = {
    changed: names,
    changes: { ...changes, ...(names.includes('url') && { url: origins }) },
  };
  await save(context, webhook, {
    before,
    audit: webhookEntry('webhook_updated', webhook, request, traits),
  });
  return webhook;
}

/**
 * Gives the endpoint a new secret. The old one signs, too, for the grace.
 *
 * @throws AppError `not_found`, `validation_failed`, `conflict`.
 */
export async function rotateSecret(
  context: WebhooksContext,
  id: string,
  { grace = '24h', request }: { readonly grace?: string | undefined; readonly request: AdminRequest },
): Promise<StoredWebhook> {
  const graceMs = parseDuration(grace);
  if (graceMs === undefined || graceMs < 0 || graceMs > maxGraceMs)
    throw invalid('grace is a duration from 0s to 168h, such as 24h');
  const before = await getWebhook(context, id);
  const { nowMs } = request.metadata;
  const webhook = {
    ...before,
    secret: newSecret(context),
    previous_secret: graceMs === 0 ? '' : before.secret,
    previous_secret_until: graceMs === 0 ? null : new Date(nowMs + graceMs),
    updated_at: new Date(nowMs),
  };
  await save(context, webhook, { before, audit: webhookEntry('webhook_secret_rotated', webhook, request) });
  return webhook;
}

/** @throws AppError `not_found`. */
export async function deleteWebhook(
  context: WebhooksContext,
  id: string,
  request: AdminRequest,
): Promise<void> {
  const webhook = await getWebhook(context, id);
  const audit = webhookEntry('webhook_deleted', webhook, request);
  if (!(await context.store.webhooks.delete(id, audit))) throw notFound();
}

/** Posts an event of the type `webhook.test` at once. @throws AppError `not_found`. */
export async function testWebhook(
  context: WebhooksContext,
  id: string,
  request: AdminRequest,
): Promise<{ readonly delivered: boolean; readonly error?: string }> {
  const { random, nowMs, store } = context;
  const webhook = await getWebhook(context, id);
  await store.audit.append(webhookEntry('webhook_tested', webhook, request));
  const { name, url } = webhook;
  const message = {
    id: random.uuid(),
    type: 'webhook.test',
    at: new Date(nowMs()),
    data: { webhook: { id, name } },
  };
  try {
    await postEvent(message, { url, secrets: signingSecrets(webhook, nowMs()) }, context);
    return { delivered: true };
  } catch (cause) {
    return { delivered: false, error: getErrorMessage(cause).slice(0, maxErrorChars) };
  }
}

/** @throws AppError `not_found`. */
export async function getWebhook({ store }: WebhooksContext, id: string): Promise<StoredWebhook> {
  const webhook = await store.webhooks.find(id);
  if (webhook === undefined) throw notFound();
  return webhook;
}

/** The secret is returned only after it was made. */
export function toWebhookJson(
  webhook: StoredWebhook,
  { withSecret = false }: { readonly withSecret?: boolean } = {},
): JsonObject {
  const { last_delivered_at: deliveredAt, last_failed_at: failedAt, previous_secret_until: until } = webhook;
  return {
    id: webhook.id,
    name: webhook.name,
    url: webhook.url,
    event_types: webhook.event_types,
    disabled: webhook.disabled,
    created_at: webhook.created_at.toISOString(),
    updated_at: webhook.updated_at.toISOString(),
    ...(deliveredAt && { last_delivered_at: deliveredAt.toISOString() }),
    ...(failedAt && { last_failed_at: failedAt.toISOString() }),
    last_error: webhook.last_error,
    ...(until && { previous_secret_until: until.toISOString() }),
    ...(withSecret && { secret: webhook.secret }),
  };
}

/** @throws AppError `feature_disabled`. */
export function requireWebhooks({ settings }: WebhooksContext): void {
  if (!settings.eventWebhooksEnabled)
    throw errors.feature_disabled({
      message: 'Webhooks are not enabled: set SVC_EVENT_WEBHOOKS_ENABLED on all replicas',
      httpStatus: 404,
    });
}

/** @throws AppError `validation_failed`. */
async function check({ settings }: WebhooksContext, webhook: StoredWebhook): Promise<void> {
  const { name, url, event_types: types } = webhook;
  if (!nameForm.test(name) || name === 'settings')
    throw invalid('name has 1 to 40 lower-case letters, digits and hyphens, and is not settings');
  const unknown = types.find((type) => !eventTypes.includes(type));
  if (unknown !== undefined)
    throw invalid(
      `event_types: ${JSON.stringify(unknown.slice(0, 64))} is unknown, known are ${eventTypes.join(', ')}`,
    );
  if (new Set(types).size < types.length) throw invalid('event_types has a type twice');
  const parsed = URL.parse(url);
  const { eventWebhookPrivateHosts: privateHosts } = settings;
  const isPrivate = privateHosts.includes(parsed?.hostname.replace(/^\[|\]$/g, '') ?? '');
  if (
    url.length > maxUrlChars ||
    !(parsed?.protocol === 'https:' || (parsed?.protocol === 'http:' && isPrivate))
  )
    throw invalid('url is an https URL, or an http URL of a host in SVC_EVENT_WEBHOOK_PRIVATE_HOSTS');
  const problem = await findUrlProblem(url, privateHosts);
  if (problem !== undefined) throw invalid(`url cannot be called: ${problem}`);
}

async function save(
  { store }: WebhooksContext,
  webhook: StoredWebhook,
  { before, audit }: { readonly before: StoredWebhook; readonly audit: ReturnType<typeof auditEntry> },
): Promise<void> {
  if (await store.webhooks.update(webhook, { version: before.updated_at, audit })) return;
  const others = await store.webhooks.list();
  if (others.some(({ id, name }) => id !== webhook.id && name === webhook.name)) throw nameTaken(webhook);
  throw errors.conflict();
}

/** Its form is that of Standard Webhooks, as in the settings. */
function newSecret({ random }: WebhooksContext): string {
  return `v1,whsec_${random.bytes(secretBytes).toString('base64')}`;
}

function webhookEntry(
  action: AuditAction,
  { id, name }: StoredWebhook,
  { actor, metadata }: AdminRequest,
  traits?: JsonObject,
) {
  return auditEntry(actor, action, { metadata, traits: { webhook_id: id, webhook: name, ...traits } });
}

function invalid(message: string) {
  return errors.validation_failed({ message });
}

function nameTaken({ name }: StoredWebhook) {
  return errors.conflict({ message: `A webhook with the name ${name} exists already` });
}

function notFound() {
  return errors.not_found({ message: 'No webhook has this id' });
}

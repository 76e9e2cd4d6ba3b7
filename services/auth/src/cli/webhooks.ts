import type { Context } from '../app/context.ts';
import type { StoredWebhook } from '../webhooks/webhook-store.ts';
import {
  createWebhook,
  deleteWebhook,
  requireWebhooks,
  rotateSecret,
  testWebhook,
  toWebhookJson,
} from '../webhooks/webhooks.ts';
import type { Command, CommandFlags } from './arguments.ts';
import { CommandError, metadataNow, operator, withContext } from './operator.ts';
import { formatTable } from './routes.ts';

const request = () => ({ actor: operator, metadata: metadataNow() });

/** `webhooks list` */
export const listWebhooksCommand: Command = ({ environmentFiles, flags }) =>
  withContext(environmentFiles, async (context) => {
    requireWebhooks(context);
    const webhooks = await context.store.webhooks.list();
    if (flags.json === true) return webhooks.map((one) => JSON.stringify(toWebhookJson(one))).join('\n');
    const header = ['NAME', 'URL', 'EVENTS', 'STATE', 'LAST FAILURE'];
    return formatTable([header, ...webhooks.map(toRow)]).trimEnd();
  });

function toRow(webhook: StoredWebhook): string[] {
  const { name, url, event_types: types, disabled, last_failed_at: failedAt, last_error: error } = webhook;
  const failure = failedAt === null ? '-' : `${failedAt.toISOString().slice(0, 16)} ${error}`;
  return [name, url, types.join() || 'all', disabled ? 'disabled' : 'active', failure];
}

/** `webhooks add`: prints the secret. */
export const addWebhookCommand: Command = ({ environmentFiles, args: [name = '', url = ''], flags }) =>
  withContext(environmentFiles, async (context) => {
    requireWebhooks(context);
    const types = flags.events?.split(',').map((type) => type.trim());
    const { secret } = await createWebhook(context, { name, url, event_types: types }, request());
    return secret;
  });

/** Runs `work` for the endpoint of the first argument, and prints its result. */
function forWebhook(
  work: (context: Context, webhook: StoredWebhook, flags: CommandFlags) => Promise<string>,
): Command {
  return ({ environmentFiles, args: [name = ''], flags }) =>
    withContext(environmentFiles, async (context) => {
      requireWebhooks(context);
      const webhook = (await context.store.webhooks.list()).find((one) => one.name === name);
      if (webhook === undefined) throw new CommandError(`webhook not found: ${name}`);
      return work(context, webhook, flags);
    });
}

/** `webhooks rotate`: prints the new secret. */
export const rotateWebhookCommand = forWebhook(async (context, { id }, { grace }) => {
  const { secret } = await rotateSecret(context, id, { grace, request: request() });
  return secret;
});

/** `webhooks remove` */
export const removeWebhookCommand = forWebhook(async (context, { id, name }) => {
  await deleteWebhook(context, id, request());
  return `${name} is removed, with the events that waited for it`;
});

/** `webhooks test`: fails if the endpoint does not accept the event. */
export const testWebhookCommand = forWebhook(async (context, { id, name }) => {
  const { delivered, error = '' } = await testWebhook(context, id, request());
  if (!delivered) throw new CommandError(`${name} did not accept the test: ${error}`);
  return `${name} accepted the test`;
});

import type { ClientBuffers } from '@tollgate/grpc-server/client-buffers';
import { Counter, Gauge, type Registry } from 'prom-client';

/** The difference of both is the work that is queued or running, or failed. */
export interface WorkCounters {
  readonly submitted: Counter;
  readonly completed: Counter;
}

const deliveryResults = ['delivered', 'failed', 'abandoned'];

/** Values of the label `result` of `auth_oauth_tokens_total`. */
const oauthTokenResults: readonly string[] = [
  ...['issued', 'invalid_request', 'invalid_client', 'invalid_grant', 'invalid_scope', 'invalid_target'],
  ...['access_denied', 'unauthorized_client', 'unsupported_grant_type', 'temporarily_unavailable', 'failed'],
];

/**
 * Counters of the service that requests and jobs increment. Without a registry they are not
 * exported.
 */
export class Metrics {
  /** Emails beyond the quota of all users together. */
  readonly refusedEmails: Counter;
  readonly sentMails: Counter<'type'>;
  readonly failedMails: Counter;
  /** Mails that were sent with another template than the configured one. */
  readonly mailTemplateFailures: Counter<'reason'>;
  readonly hookCalls: Counter<'hook' | 'result'>;
  readonly eventDeliveries: Counter<'endpoint' | 'result'>;
  readonly providerSignIns: Counter<'provider' | 'result'>;
  readonly oauthTokens: Counter<'result'>;
  readonly wrongGuesses: Counter<'kind'>;
  readonly unrecordedSignIns: Counter;
  readonly refusedRequests: Counter<'limiter' | 'key'>;
  readonly removedRows: Counter<'kind'>;
  readonly passwordHashes: WorkCounters;
  readonly passwordComparisons: WorkCounters;
  readonly passwordQueueFull: Counter;
  readonly clientBuffersRefused: Counter<'protocol'>;
  readonly #registry: Registry | undefined;

  constructor(registry?: Registry) {
    const registers = registry === undefined ? [] : [registry];
    this.#registry = registry;
    this.clientBuffersRefused = new Counter({
      name: 'auth_client_buffers_refused_total',
      help: 'Requests and connections ended because clients held too much, by protocol.',
      labelNames: ['protocol'],
      registers,
    });
    // Alerts need the series from the start.
    for (const protocol of ['grpc', 'http']) this.clientBuffersRefused.inc({ protocol }, 0);
    this.refusedEmails = new Counter({
      name: 'gotrue_email_rate_limit_counter_total',
      help: 'Emails refused by the quota that all users share.',
      registers,
    });
    this.sentMails = new Counter({
      name: 'global_auth_email_send_operations_total',
      help: 'Mails handed to the mail server, or to be handed over, by type.',
      labelNames: ['type'],
      registers,
    });
    this.failedMails = new Counter({
      name: 'global_auth_email_send_errors_total',
      help: 'Mails that could not be handed to the mail server.',
      registers,
    });
    this.mailTemplateFailures = new Counter({
      name: 'auth_mail_template_failures_total',
      help: 'Mail templates that could not be fetched, parsed or rendered, by reason.',
      labelNames: ['reason'],
      registers,
    });
    // Alerts need the series from the start.
    for (const reason of ['unavailable', 'invalid', 'render']) this.mailTemplateFailures.inc({ reason }, 0);
    this.hookCalls = new Counter({
      name: 'auth_hook_calls_total',
      help: 'Calls of enabled hooks, by hook and result: ok, rejected (the hook replied with an error), failed.',
      labelNames: ['hook', 'result'],
      registers,
    });
    this.eventDeliveries = new Counter({
      name: 'auth_event_deliveries_total',
      help: 'Attempts to deliver events by webhook, by endpoint (its name, settings, or oauth_clients) and result: delivered, failed (retried later), abandoned.',
      labelNames: ['endpoint', 'result'],
      registers,
    });
    // Alerts need the series from the start.
    this.addEndpoint('settings');
    this.providerSignIns = new Counter({
      name: 'auth_provider_sign_ins_total',
      help: 'Sign-ins at identity providers, by provider and result: ok, rejected, failed (an error of the provider or of this server, also at /authorize).',
      labelNames: ['provider', 'result'],
      registers,
    });
    this.oauthTokens = new Counter({
      name: 'auth_oauth_tokens_total',
      help: 'Requests for tokens of OAuth clients, by result: issued, an error code of OAuth 2.0, or failed.',
      labelNames: ['result'],
      registers,
    });
    // Alerts need the series from the start.
    for (const result of oauthTokenResults) this.oauthTokens.inc({ result }, 0);
    this.wrongGuesses = new Counter({
      name: 'auth_wrong_guesses_total',
      help: 'Wrong passwords and codes that were verified, by kind. Attempts refused with 429 are not included.',
      labelNames: ['kind'],
      registers,
    });
    this.unrecordedSignIns = new Counter({
      name: 'auth_unrecorded_failed_sign_ins_total',
      help: 'Failed sign-ins that the audit log does not have, because their user has 20 entries of the hour.',
      registers,
    });
    this.refusedRequests = new Counter({
      name: 'auth_refused_requests_total',
      help: 'Requests over a rate limit, by limiter and key: client, account, or instance where clients are unknown.',
      labelNames: ['limiter', 'key'],
      registers,
    });
    this.removedRows = new Counter({
      name: 'gotrue_cleanup_affected_rows_total',
      help: 'Expired rows removed, by kind.',
      labelNames: ['kind'],
      registers,
    });
    this.passwordHashes = workCounters('gotrue_generate_from_password', 'Passwords hashed', registers);
    this.passwordComparisons = workCounters(
      'gotrue_compare_hash_and_password',
      'Passwords compared with a hash',
      registers,
    );
    this.passwordQueueFull = new Counter({
      name: 'auth_password_queue_full_total',
      help: 'Passwords neither hashed nor compared because the queue was full.',
      registers,
    });
  }

  /** Adds the series of an endpoint of webhooks. */
  addEndpoint(endpoint: string): void {
    for (const result of deliveryResults) this.eventDeliveries.inc({ endpoint, result }, 0);
  }

  /** Removes the series of an endpoint that does not exist any more. */
  removeEndpoint(endpoint: string): void {
    for (const result of deliveryResults) this.eventDeliveries.remove({ endpoint, result });
  }

  /** Exports what clients hold. */
  exportClientBuffers(buffers: ClientBuffers): void {
    if (this.#registry === undefined) return;
    new Gauge({
      name: 'auth_client_buffers_bytes',
      help: 'Bytes of incomplete requests and unread replies.',
      registers: [this.#registry],
      collect() {
        this.set(buffers.bytes);
      },
    });
  }
}

function workCounters(name: string, help: string, registers: Registry[]): WorkCounters {
  return {
    submitted: new Counter({ name: `${name}_submitted_total`, help: `${help}, or queued.`, registers }),
    completed: new Counter({ name: `${name}_completed_total`, help: `${help}.`, registers }),
  };
}

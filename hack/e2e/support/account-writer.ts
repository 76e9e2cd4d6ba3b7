import { randomUUID } from 'node:crypto';
import { serviceKey } from '@tollgate/kit/service-key';
import { authServerSecret } from '@tollgate/testkit/services';
import { answerTimeoutMs, lostAfterMs, type Outcome, type Writer } from './ledger.ts';
import { sendJson, type TextAnswer } from './requests.ts';

/** Clients repeat requests with these statuses; auth-js does, and keeps the session. */
const retryable: readonly number[] = [502, 503, 504];

/**
 * A user who changes the metadata and refreshes the session, beside an administrator who creates
 * users.
 */
export class AccountWriter implements Writer {
  readonly #url: string;
  readonly #userId: string;
  readonly #accessToken: string;
  #refreshToken: string;
  readonly #created: string[] = [];
  #turn = 0;
  #lastChange = { acknowledged: 0, sent: 0 };

  /** Signs a user up. */
  static async signUp(url: string): Promise<AccountWriter> {
    const body = { email: `${randomUUID()}@example.com`, password: 'correct horse battery' };
    const { status, text } = await sendJson(`${url}/signup`, {
      ...{ method: 'POST', body, timeoutMs: answerTimeoutMs },
    });
    if (status !== 200) throw new Error(text);
    // Parsed boundary: a session.
    const session = JSON.parse(text) as { access_token: string; refresh_token: string; user: { id: string } };
    return new AccountWriter(url, session);
  }

  private constructor(
    url: string,
    session: {
      readonly access_token: string;
      readonly refresh_token: string;
      readonly user: { readonly id: string };
    },
  ) {
    this.#url = url;
    this.#userId = session.user.id;
    this.#accessToken = session.access_token;
    this.#refreshToken = session.refresh_token;
  }

  async write(): Promise<Outcome> {
    const writes = [() => this.#changeMetadata(), () => this.#refresh(), () => this.#createUser()];
    const write = writes[this.#turn % writes.length];
    this.#turn += 1;
    try {
      const { status, text } = (await write?.()) ?? { status: 0, text: '' };
      if (status === 200) return 'acknowledged';
      return retryable.includes(status) ? 'refused' : { wrong: `${status} ${text}` };
    } catch {
      return 'unknown';
    }
  }

  async findLosses(): Promise<readonly string[]> {
    const losses: string[] = [];
    for (const id of this.#created)
      if ((await this.#asAdmin('GET', `/${id}`)).status !== 200) losses.push(`the user ${id}`);
    const { status, text } = await this.#asAdmin('GET', `/${this.#userId}`);
    // Parsed boundary: a user.
    const { user_metadata: metadata } = JSON.parse(text) as { user_metadata?: { change?: number } };
    const change = metadata?.change ?? 0;
    const { acknowledged, sent } = this.#lastChange;
    if (status !== 200 || change < acknowledged || change > sent)
      losses.push(`the change ${acknowledged} (of ${sent}): ${text}`);
    const refreshed = await this.#refresh(answerTimeoutMs);
    if (refreshed.status !== 200) losses.push(`the session: ${refreshed.text}`);
    return losses;
  }

  async #changeMetadata(): Promise<TextAnswer> {
    this.#lastChange.sent += 1;
    const change = this.#lastChange.sent;
    const answer = await sendJson(`${this.#url}/user`, {
      timeoutMs: lostAfterMs,
      method: 'PUT',
      token: this.#accessToken,
      body: { data: { change } },
    });
    if (answer.status === 200) this.#lastChange.acknowledged = change;
    return answer;
  }

  async #refresh(timeoutMs = lostAfterMs): Promise<TextAnswer> {
    const body = { refresh_token: this.#refreshToken };
    const answer = await sendJson(`${this.#url}/token?grant_type=refresh_token`, {
      method: 'POST',
      body,
      timeoutMs,
    });
    if (answer.status === 200)
      this.#refreshToken = (JSON.parse(answer.text) as { refresh_token: string }).refresh_token;
    return answer;
  }

  async #createUser(): Promise<TextAnswer> {
    const body = { email: `${randomUUID()}@example.com` };
    const answer = await this.#asAdmin('POST', '', { body, timeoutMs: lostAfterMs });
    if (answer.status === 200) this.#created.push((JSON.parse(answer.text) as { id: string }).id);
    return answer;
  }

  #asAdmin(
    method: string,
    path: string,
    { body, timeoutMs = answerTimeoutMs }: { readonly body?: unknown; readonly timeoutMs?: number } = {},
  ): Promise<TextAnswer> {
    const token = serviceKey(authServerSecret);
    return sendJson(`${this.#url}/admin/users${path}`, { method, token, body, timeoutMs });
  }
}

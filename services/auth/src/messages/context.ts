import type { FlowsContext } from '../flows/pkce.ts';
import type { OneTimeTokenStore } from '../one-time-tokens/store.ts';
import type { Mailer } from './mailer.ts';
import type { SmsGateway } from './sms-gateway.ts';

export type MessagesContext = FlowsContext & {
  readonly store: { readonly oneTimeTokens: OneTimeTokenStore };
  readonly mailer: Pick<Mailer, 'send' | 'sendNothing'>;
  readonly sms: SmsGateway;
};

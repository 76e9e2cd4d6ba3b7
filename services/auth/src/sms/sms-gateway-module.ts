import type { Logger } from '@tollgate/kit/logger';
import type { SmsGateway } from '../ports/sms-gateway.ts';
import type { Settings } from '../settings/settings.ts';

/** One vendor of text messages. */
export interface SmsGatewayModule {
  /** Settings without which it cannot send. */
  readonly needs: readonly (keyof Settings)[];
  create(settings: Settings, deps: { readonly logger: Logger }): SmsGateway;
}

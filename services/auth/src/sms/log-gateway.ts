import { randomUUID } from 'node:crypto';
import type { SmsGatewayModule } from './sms-gateway-module.ts';

/** Writes messages to the log, codes and all: for development, where nobody pays for them. */
export const logGateway: SmsGatewayModule = {
  needs: [],
  create: (_settings, { logger }) => ({
    send: ({ to, text, channel }) => {
      const messageId = randomUUID();
      logger.info({ to, text, channel, messageId }, 'text message');
      return Promise.resolve({ messageId });
    },
  }),
};

/** Tool calls in one message. A request with a message of more is refused, so a turn of the model is cut off there. */
export const MAX_CALLS = 256

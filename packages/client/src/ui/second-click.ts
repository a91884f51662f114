/**
 * From now on the second click of a double click answers nothing: the page may have moved on under the
 * pointer to a request that the user has not read. Choices are the buttons in an element with
 * the class `approval-choices`. Returns a function that ends it.
 */
export function ignoreSecondClicks(): () => void {
  const ignore = (event: MouseEvent) => {
    const isChoice = event.target instanceof Element && event.target.closest('.approval-choices') !== null
    if (event.detail < 2 || !isChoice) return
    event.preventDefault()
    event.stopImmediatePropagation()
  }
  addEventListener('click', ignore, { capture: true })
  return () => removeEventListener('click', ignore, { capture: true })
}

'use strict';
const time = document.querySelector('time');
time.textContent = new Date(time.dateTime).toLocaleTimeString(document.documentElement.lang, {hour: '2-digit', minute: '2-digit'});
